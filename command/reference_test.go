package command

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	verbs := verbsOf(root)
	common := commonFlags(verbs)
	page.WriteString("# The command\n\nGenerated from the verbs of package `command` by `go generate ./command`. `makegood VERB --help` prints all that a verb has.\n\n| verb | what it does |\n|---|---|\n")
	for _, verb := range verbs {
		name := shortName(verb)
		fmt.Fprintf(&page, "| [%s](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), cell(verb.Short))
	}
	fmt.Fprintf(&page, "\n## Flags of many verbs\n\nA verb names those that it has. They mean the same everywhere.\n\n```text\n%s```\n", common.FlagUsages())
	for _, verb := range verbs {
		drawVerb(&page, verb, common)
	}
	return page.Bytes()
}

// commonFlags returns the flags that many verbs have, each time with the same words.
func commonFlags(verbs []*cobra.Command) *pflag.FlagSet {
	const many = 10
	common, seen := pflag.NewFlagSet("common", pflag.ContinueOnError), map[string]int{}
	for _, verb := range verbs {
		verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if seen[wordsOf(f)]++; seen[wordsOf(f)] == many {
				common.AddFlag(f)
			}
		})
	}
	return common
}

// wordsOf returns what the help says of a flag.
func wordsOf(f *pflag.Flag) string {
	one := pflag.NewFlagSet("one", pflag.ContinueOnError)
	one.AddFlag(f)
	return one.FlagUsages()
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

func drawVerb(page *bytes.Buffer, verb *cobra.Command, common *pflag.FlagSet) {
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
	own, named := pflag.NewFlagSet("own", pflag.ContinueOnError), []string{}
	verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if of := common.Lookup(f.Name); of != nil && wordsOf(of) == wordsOf(f) {
			named = append(named, "`--"+f.Name+"`")
			return
		}
		own.AddFlag(f)
	})
	if flags := own.FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\n```text\n%s```\n", flags)
	}
	if len(named) > 0 {
		fmt.Fprintf(page, "\n[Flags of many verbs](#flags-of-many-verbs): %s.\n", strings.Join(named, ", "))
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
