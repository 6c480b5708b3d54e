// Package sam builds, deploys and deletes stacks with the SAM CLI. Where to is the environment's matter: the
// account of the credentials, or the stand-in at AWS_ENDPOINT_URL. Its test, behind make e2e, sends orders through
// the functions of a stack that was deployed so.
package sam

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goFlags are those of make functions: what is deployed is byte for byte what anybody builds from the commit.
const goFlags = "-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid='"

// Stack is a stack of a template of this repository.
type Stack struct {
	// Root is the root of the repository, Template the template's name from there.
	Root, Template string
	// Name is that of the stack.
	Name string
	// Parameters are those of the template, Name=Value.
	Parameters []string
}

// Build builds the functions into a folder, an absolute path, with some files of the repository replaced: names from
// the root, and what takes their place.
func (s Stack) Build(ctx context.Context, folder string, replaced map[string][]byte) error {
	flags := goFlags
	if len(replaced) > 0 {
		overlay, err := s.overlay(filepath.Join(folder, "replaced"), replaced)
		if err != nil {
			return err
		}
		flags += " -overlay=" + overlay
	}
	_, err := s.run(ctx, []string{"GOWORK=off", "GOFLAGS=" + flags}, s.with("build", "--template", s.Template, "--build-dir", filepath.Join(folder, "built"))...)
	return err
}

// overlay writes what takes the place of files, and the list of them that the go command reads.
func (s Stack) overlay(folder string, replaced map[string][]byte) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	paths := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(replaced)) {
		original, err := filepath.Abs(filepath.Join(s.Root, name))
		if err != nil {
			return "", err
		}
		paths[original] = filepath.Join(folder, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(paths[original], replaced[name], 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": paths})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}

// Deploy deploys what Build has put into a folder. Deploying what is deployed already is no error.
func (s Stack) Deploy(ctx context.Context, folder string) error {
	_, err := s.run(ctx, nil, s.with("deploy", "--template", filepath.Join(folder, "built", "template.yaml"), "--stack-name", s.Name,
		"--resolve-s3", "--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar",
		"--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")...)
	return err
}

// Delete deletes the stack, and what SAM uploaded for it. What the template retains stays.
func (s Stack) Delete(ctx context.Context) error {
	_, err := s.run(ctx, nil, "delete", "--stack-name", s.Name, "--no-prompts")
	return err
}

// Log returns what a function of the stack has logged.
func (s Stack) Log(ctx context.Context, function string) (string, error) {
	out, err := s.run(ctx, nil, "logs", "--stack-name", s.Name, "--name", function)
	return string(out), err
}

func (s Stack) with(arguments ...string) []string {
	if len(s.Parameters) == 0 {
		return arguments
	}
	return append(append(arguments, "--parameter-overrides"), s.Parameters...)
}

// run runs sam, and returns what it says. It finds its settings beside the template, which may be a built one, so
// it is told where they are.
func (s Stack) run(ctx context.Context, environment []string, arguments ...string) ([]byte, error) {
	settings, err := filepath.Abs(filepath.Join(s.Root, "samconfig.toml"))
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "sam", append(arguments, "--region", os.Getenv("AWS_REGION"), "--config-file", settings)...)
	command.Dir = s.Root
	command.Env = append(os.Environ(), environment...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("sam %s: %w\n%s%s", strings.Join(arguments, " "), err, out, said.Bytes())
	}
	return out, nil
}

// Invoke invokes a function of the stack, and returns its answer.
func (s Stack) Invoke(ctx context.Context, function string, event []byte) ([]byte, error) {
	return s.run(ctx, nil, "remote", "invoke", function, "--stack-name", s.Name, "--event", string(event))
}
