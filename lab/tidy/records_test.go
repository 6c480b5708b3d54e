package tidy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	recordsIndex       = "docs/decisions/README.md"
	recordTopics       = "docs/decisions/topics"
	dependenciesRecord = "docs/decisions/0002-dependencies.md"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheIndexNamesEveryDecisionRecord(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs/decisions/[0-9]*.md"))
	if err != nil || len(files) < 2 {
		t.Fatalf("records: got %v, %v", files, err)
	}
	var want []string
	for _, f := range files {
		want = append(want, filepath.Base(f))
	}
	if got := linked(read(t, recordsIndex)); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", recordsIndex, got, want)
	}
}

// linked returns the records that an index has a row for.
func linked(index string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\| \[\d{4}\]\((\d{4}-[a-z0-9-]+\.md)\) \|`).FindAllStringSubmatch(index, -1) {
		names = append(names, m[1])
	}
	return names
}

// Readers begin with the topics: a record that no topic names is found by its number alone.
func TestEveryRecordStandsInATopic(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, recordTopics, "*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("topics: got %v, %v", files, err)
	}
	topics := map[string]string{}
	for _, f := range files {
		name := path.Join(recordTopics, filepath.Base(f))
		topics[filepath.Base(f)] = read(t, name)
		for _, m := range topicLink.FindAllStringSubmatch(topics[filepath.Base(f)], -1) {
			file, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(root, recordTopics, file)); err != nil {
				t.Errorf("%s: %s leads to no file", name, m[1])
			}
		}
	}
	index := read(t, recordsIndex)
	for _, wrong := range compareTopics(topics, linked(index), topicsOf(index)) {
		t.Errorf("%s: %s", recordTopics, wrong)
	}
}

// maxTopicLines is how long the page of a topic may be: one that is longer is two topics.
const maxTopicLines = 90

var (
	topicLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	topicRecord = regexp.MustCompile(`\]\(\.\./(\d{4}-[^)\s]+)\)`)
	topicForm   = regexp.MustCompile(`^# .+\n\n(?:[^\n]+\n){3}\n## What holds\n\n- (?s:.+)\n\n## What was rejected\n\n- (?s:.+)$`)
)

// topicsOf returns the topics that an index has a row for.
func topicsOf(index string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(topics/([a-z-]+\.md)\) \|`).FindAllStringSubmatch(index, -1) {
		names = append(names, m[1])
	}
	return names
}

// compareTopics says which records no topic names, which topics the index lacks, and what is wrong with a topic's form.
func compareTopics(topics map[string]string, records, indexed []string) []string {
	var wrong []string
	named := map[string]bool{}
	for name, text := range topics {
		if !slices.Contains(indexed, name) {
			wrong = append(wrong, name+" has no row in the index")
		}
		if !topicForm.MatchString(text) {
			wrong = append(wrong, name+" does not begin with three lines, then What holds, then What was rejected")
		}
		if strings.Count(text, "\n") > maxTopicLines {
			wrong = append(wrong, name+" is too long")
		}
		for _, bullet := range strings.Split(text, "\n- ")[1:] {
			bullet, _, _ = strings.Cut(bullet, "\n\n")
			links := topicRecord.FindAllStringSubmatch(bullet, -1)
			if len(links) == 0 {
				wrong = append(wrong, name+" has a bullet without a record: "+bullet)
			}
			for _, m := range links {
				named[m[1]] = true
				if !slices.Contains(records, m[1]) {
					wrong = append(wrong, name+" leads to "+m[1]+", which is no record")
				}
			}
		}
	}
	for _, name := range indexed {
		if _, is := topics[name]; !is {
			wrong = append(wrong, "the index leads to "+name+", which is no topic")
		}
	}
	for _, record := range records {
		if !named[record] {
			wrong = append(wrong, "no topic names "+record)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestATopicThatLeavesOutARecordIsFound(t *testing.T) {
	const good = "# A\n\none\ntwo\nthree\n\n## What holds\n\n- x\n  ([0001](../0001-a.md))\n\n## What was rejected\n\n- *y*: z ([0002](../0002-b.md))\n"
	records := []string{"0001-a.md", "0002-b.md"}
	for _, row := range []struct {
		text    string
		records []string
		indexed string
		want    string
	}{
		{good, records, "| [A](topics/a.md) | x |\n", ""},
		{good, append(records, "0003-c.md"), "| [A](topics/a.md) | x |\n", "no topic names 0003-c.md"},
		{good, records, "see [A](topics/a.md)\n", "a.md has no row in the index"},
		{good, records, "| [A](topics/a.md) | x |\n| [B](topics/b.md) | x |\n", "the index leads to b.md, which is no topic"},
		{good + "- *w*: ([0009](../0009-i.md))\n", records, "| [A](topics/a.md) | x |\n", "a.md leads to 0009-i.md, which is no record"},
		{good + "- *w*: v\n", records, "| [A](topics/a.md) | x |\n", "a.md has a bullet without a record: *w*: v\n"},
		{strings.Replace(good, "three\n", "", 1), records, "| [A](topics/a.md) | x |\n", "a.md does not begin with three lines, then What holds, then What was rejected"},
		{good + strings.Repeat("\n", maxTopicLines), records, "| [A](topics/a.md) | x |\n", "a.md is too long"},
	} {
		if got := strings.Join(compareTopics(map[string]string{"a.md": row.text}, row.records, topicsOf(row.indexed)), "; "); got != row.want {
			t.Errorf("%q with %v: got %q, want %q", row.indexed, row.records, got, row.want)
		}
	}
}

func TestEveryDependencyHasARecord(t *testing.T) {
	modules := required(read(t, "go.mod"))
	for _, folder := range append(workspace(t), root+"/tools") {
		for name, version := range required(read(t, path.Join(strings.TrimPrefix(folder, root), "go.mod"))) {
			if modules[name] == "" {
				modules[name] = version
			}
		}
	}
	tools := regexp.MustCompile(`(?m)^\t(\S+)$`).FindAllStringSubmatch(read(t, "tools/go.mod"), -1)
	var used []string
	for _, tool := range tools {
		used = append(used, tool[1])
	}
	for _, s := range goFiles(readTree(t)) {
		for _, i := range imports(s) {
			if i.ours == "" && !i.isStandard() {
				used = append(used, i.name)
			}
		}
	}
	for _, wrong := range compareRecord(recorded(read(t, dependenciesRecord)), modules, used) {
		t.Errorf("%s: %s", dependenciesRecord, wrong)
	}
}

// A build in the workspace selects the highest version that any of its modules names. The tests must see the versions
// that the product's go.mod names, since those are what a user's build selects.
func TestTheWorkspaceBuildsWhatTheProductNames(t *testing.T) {
	product := required(read(t, "go.mod"))
	for _, folder := range workspace(t) {
		file := path.Join(strings.TrimPrefix(folder, root), "go.mod")
		for name, version := range required(read(t, file)) {
			if want := product[name]; want != "" && want != version {
				t.Errorf("%s: %s is at %s, want %s as in the product's go.mod: run go get %s@%s in its folder", file, name, version, want, name, want)
			}
		}
	}
}

// required returns the version of each module that a go.mod names.
func required(gomod string) map[string]string {
	modules := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/\S+) (v\S+)`).FindAllStringSubmatch(gomod, -1) {
		modules[m[1]] = m[2]
	}
	return modules
}

// recorded returns the version of each module that has a row in the record.
func recorded(record string) map[string]string {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \| (v\S+), \d{4}-\d{2}-\d{2} \| \d+`).FindAllStringSubmatch(record, -1) {
		rows[m[1]] = m[2]
	}
	return rows
}

// compareRecord says where the rows and what is used differ.
func compareRecord(rows, modules map[string]string, used []string) []string {
	var wrong []string
	served := map[string]bool{}
	for _, name := range used {
		row := ""
		for module := range rows {
			if within(name, module) && len(module) > len(row) { // A module may lie below another.
				row = module
			}
		}
		if row == "" {
			wrong = append(wrong, "no row for "+name)
		}
		served[row] = true
	}
	for module, version := range rows {
		if modules[module] != version {
			wrong = append(wrong, module+" is at "+version+" here and at "+modules[module]+" in go.mod")
		}
		if !served[module] {
			wrong = append(wrong, module+" is used by nothing")
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

func TestADifferenceBetweenRecordAndUseIsFound(t *testing.T) {
	rows := recorded("| example.org/a | v1.2.3, 2026-01-01 | 0 | x |\n| example.org/b | v2.0.0, 2026-01-01 | 3 | y |\n")
	gomod := required("module m\n\nrequire (\n\texample.org/a v1.2.3 // indirect\n\texample.org/b v2.0.1\n)\n\nrequire example.org/c v1.0.0\n")
	for _, row := range []struct {
		rows map[string]string
		used []string
		want string
	}{
		{rows, []string{"example.org/a/sub", "example.org/b"}, "example.org/b is at v2.0.0 here and at v2.0.1 in go.mod"},
		{map[string]string{"example.org/a": "v1.2.3"}, []string{"example.org/a", "example.org/c"}, "no row for example.org/c"},
		{map[string]string{"example.org/c": "v1.0.0"}, nil, "example.org/c is used by nothing"},
		{map[string]string{"example.org/a": "v1.2.3"}, []string{"example.org/a"}, ""},
	} {
		if got := strings.Join(compareRecord(row.rows, gomod, row.used), "; "); got != row.want {
			t.Errorf("%v used %v: got %q, want %q", row.rows, row.used, got, row.want)
		}
	}
	if got := linked("| [0001](0001-a.md) | x |\nsee [0002](0002-b.md)\n"); len(got) != 1 {
		t.Errorf("linked: got %v, want the one in the table", got)
	}
}
