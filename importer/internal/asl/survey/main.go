// Command survey tries makegood-import on definitions of others, and prints what was taken over of them as docs/import-table.md.
//
//	go run ./importer/internal/asl/survey -dir .build/definitions
//
// It gets archives of registries by their clients into the folder, where they are not there yet, and reads every
// definition in it and in its subfolders, including definitions that were put there by hand. The tree of this project
// keeps only facts of a definition: its place, its number of states of each type, and the result of the import.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/importer/internal/asl"
)

// maxFiles is how many files of a folder are looked at.
const maxFiles = 200_000

// archives are those of registries that hold definitions, each of one version.
var archives = []struct{ client, name, version string }{
	{"npm", "@wmfs/statelint", "1.30.0"},
	{"npm", "@aws-solutions-constructs/aws-lambda-stepfunctions", "2.56.0"},
	{"pip", "moto", "5.2.5"},
	{"pip", "cfn-lint", "1.58.0"},
	{"pip", "aws-sam-translator", "1.115.0"},
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".build/definitions", "folder with the definitions; what is missing is fetched into it")
	flag.Parse()
	for _, a := range archives {
		if err := fetch(*dir, a.client, a.name, a.version); err != nil {
			log.Fatalf("survey: %s %s: %v", a.client, a.name, err)
		}
	}
	found, err := look(*dir)
	if err != nil {
		log.Fatal("survey: ", err)
	}
	write(os.Stdout, found)
}

// fetch gets an archive and unpacks it, unless it is there.
func fetch(dir, client, name, version string) error {
	folder := filepath.Join(dir, client, name+"@"+version)
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	got, err := os.MkdirTemp("", "survey")
	if err != nil {
		return err
	}
	defer os.RemoveAll(got)
	get := exec.Command("npm", "pack", "--silent", name+"@"+version)
	if client == "pip" {
		get = exec.Command("pip", "download", "--quiet", "--no-deps", "--no-binary", name, name+"=="+version)
	}
	get.Dir = got
	if said, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	packed, err := filepath.Glob(filepath.Join(got, "*gz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("want one archive, got %q", packed)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if said, err := exec.Command("tar", "xzf", packed[0], "-C", folder, "--strip-components=1").CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, said), os.RemoveAll(folder))
	}
	return nil
}

// tried is one definition, and what became of it.
type tried struct {
	file   string
	report asl.Report
	// refused is why it is no definition.
	refused error
}

// look tries all definitions below a folder, each text once.
func look(dir string) ([]tried, error) {
	var found []tried
	seen := map[[sha256.Size]byte]bool{}
	files := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !slices.Contains([]string{".json", ".yaml", ".yml", ".asl"}, filepath.Ext(name)) {
			return err
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s holds more than %d files", dir, maxFiles)
		}
		source, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(source), "StartAt") || len(source) > asl.MaxBytes || seen[sha256.Sum256(source)] {
			return err
		}
		seen[sha256.Sum256(source)] = true
		file, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		imported, err := asl.Import(source, asl.Options{From: "survey"})
		var wrong asl.Errors
		switch {
		case errors.As(err, &wrong) && !ofLanguage(wrong):
			return nil // a schema, a snippet, a template without a state machine
		case errors.As(err, &wrong):
			found = append(found, tried{file: filepath.ToSlash(file), refused: wrong[0]})
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, tried{file: filepath.ToSlash(file), report: imported.Report})
		return nil
	})
	return found, err
}

// ofLanguage reports whether something is a definition, though a wrong one.
func ofLanguage(wrong asl.Errors) bool {
	return strings.HasPrefix(wrong[0].Pointer, "/States") || strings.HasPrefix(wrong[0].Pointer, "/StartAt")
}

func write(w io.Writer, found []tried) {
	states, taken, refused := 0, 0, 0
	for _, f := range found {
		if f.refused != nil {
			refused++
			continue
		}
		states += len(f.report.States)
		if f.report.Whole() {
			taken++
		}
	}
	fmt.Fprintf(w, `# What was taken over of definitions of others

Made by `+"`make import-survey`"+` on %s; do not edit it. `+"`makegood-import`"+` was tried on %d definitions of Amazon States Language that we did not write.
%d are taken for definitions, with %d states; of %d every state was taken over. %d are refused, each with its place: they break a rule of
the language, mostly on purpose, to test a validator. [Coming from Step Functions](coming-from-step-functions.md) says what the words mean.

## By type

| type | states | taken over | with a difference | not |
|---|---|---|---|---|
`, time.Now().UTC().Format(time.DateOnly), len(found), len(found)-refused, states, taken, refused)
	byType(w, found)
	fmt.Fprint(w, "\n## By definition\n\n| definition | states | taken over | with a difference | not | what is to be known of which |\n|---|---|---|---|---|---|\n")
	for _, f := range found {
		if f.refused == nil {
			r := f.report
			fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %s |\n", cell(f.file), kinds(r), r.Taken, r.Different, r.NotTaken, cell(remarks(r)))
		}
	}
	fmt.Fprint(w, "\n## Refused\n\n| definition | why |\n|---|---|\n")
	for _, f := range found {
		if f.refused != nil {
			fmt.Fprintf(w, "| %s | %s |\n", cell(f.file), cell(f.refused.Error()))
		}
	}
}

func byType(w io.Writer, found []tried) {
	counts := map[string][3]int{}
	for _, f := range found {
		for _, s := range f.report.States {
			c := counts[s.Type]
			c[slices.Index([]asl.Verdict{asl.TakenOver, asl.Difference, asl.NotTaken}, s.Verdict)]++
			counts[s.Type] = c
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		c := counts[kind]
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d |\n", kind, c[0]+c[1]+c[2], c[0], c[1], c[2])
	}
}

// kinds counts the states of a definition by type.
func kinds(r asl.Report) string {
	counts := map[string]int{}
	for _, s := range r.States {
		counts[s.Type]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// remarks are what is said of the states that are not just taken over, by number of the state.
func remarks(r asl.Report) string {
	var lines []string
	for i, s := range r.States {
		for _, text := range s.Left {
			lines = append(lines, fmt.Sprintf("%d %s: not: %s", i+1, s.Type, brief(text)))
		}
		for _, text := range s.Differences {
			lines = append(lines, fmt.Sprintf("%d %s: %s", i+1, s.Type, brief(text)))
		}
	}
	return strings.Join(lines, "\n")
}

// aMap begins the remark on a Map that is not taken over. The reason follows.
const aMap = "a Map: "

// brief is the beginning of a remark, up to what it advises.
func brief(text string) string {
	if why, is := strings.CutPrefix(text, aMap); is {
		return aMap + brief(why)
	}
	text, _, _ = strings.Cut(text, ": ")
	if runes := []rune(text); len(runes) > 90 {
		text = string(runes[:90]) + "..."
	}
	return text
}

// cell quotes what would end a cell, or be taken for HTML or an expression.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "<", "&lt;", "`", "'").Replace(text)
}
