package command

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

//go:generate go test . -run TestTheReferenceOfTheCommandIsThatOfItsVerbs -rewrite

var rewrite = flag.Bool("rewrite", false, "write docs/reference/command.md anew")

const commandReference = "../docs/reference/command.md"

// What the reference says of the command is what its help says.
func TestTheReferenceOfTheCommandIsThatOfItsVerbs(t *testing.T) {
	want := drawCommand(newRoot("makegood", nil, nil))
	if *rewrite {
		must(t, os.WriteFile(commandReference, want, 0o644))
	}
	got, err := os.ReadFile(commandReference)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/reference/command.md is not what the command says (%v): run go generate ./command", err)
	}
}

// drawCommand writes the help of all verbs as a page.
func drawCommand(root *cobra.Command) []byte {
	var page bytes.Buffer
	page.WriteString("# The command\n\nGenerated from the verbs of package `command` by `go generate ./command`. `makegood VERB --help` prints the same.\n\n| verb | what it does |\n|---|---|\n")
	verbs := verbsOf(root)
	for _, verb := range verbs {
		name := shortName(verb)
		fmt.Fprintf(&page, "| [%s](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), cell(verb.Short))
	}
	for _, verb := range verbs {
		drawVerb(&page, verb)
	}
	return page.Bytes()
}

// verbsOf returns all that can be asked of a command, those below others behind them. Those that cobra brings are left out.
func verbsOf(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, verb := range root.Commands() {
		if verb.Name() != "help" && verb.Name() != "completion" && !verb.Hidden {
			all = append(append(all, verb), verbsOf(verb)...)
		}
	}
	return all
}

// shortName is the verb without the name of the command.
func shortName(verb *cobra.Command) string {
	_, name, _ := strings.Cut(verb.CommandPath(), " ")
	return name
}

func drawVerb(page *bytes.Buffer, verb *cobra.Command) {
	about := verb.Long
	if about == "" {
		about = verb.Short + "."
	}
	fmt.Fprintf(page, "\n## %s\n\n```text\n%s\n```\n", shortName(verb), strings.TrimSpace(about))
	if verb.Runnable() {
		fmt.Fprintf(page, "\nUsage: `%s`\n", verb.UseLine())
	}
	if verb.Example != "" {
		fmt.Fprintf(page, "\n```sh\n%s\n```\n", unindented(verb.Example))
	}
	if flags := verb.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\n```text\n%s```\n", flags)
	}
}

// cell is a text as it can stand in a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
