package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noticesFile is what others ask for who let us link what they have made: their licences and notices, as they wrote
// them.
const noticesFile = "NOTICES"

// notice is the name of a file in the root of a module that has some.
var notice = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|copyright|notices?|patents)([.-].*)?$`)

// notices returns those of Go itself and of every module that is linked into the command for a system.
func notices(ctx context.Context, system, machine string) ([]byte, error) {
	list := exec.CommandContext(ctx, "go", "list", "-tags="+tags, "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/makegood")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	linked := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" })
	slices.Sort(linked)
	var b bytes.Buffer
	b.WriteString("The command makegood has in it what these have made, under the terms that follow.\n")
	err = noticesOf(&b, "Go and its standard library", strings.TrimSpace(string(root)))
	for _, line := range slices.Compact(linked) {
		parts := strings.SplitN(line, " ", 3)
		err = errors.Join(err, noticesOf(&b, parts[0]+" "+parts[1], parts[2]))
	}
	return b.Bytes(), err
}

// noticesOf writes the notices in a folder. One without any is not ours to hand on.
func noticesOf(b *bytes.Buffer, what, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("notices of %s: %w", what, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !notice.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("notices of %s: %w", what, err)
		}
		found = true
		fmt.Fprintf(b, "\n=== %s: %s\n\n%s\n", what, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return errors.New(what + " has no licence in " + folder)
	}
	return nil
}
