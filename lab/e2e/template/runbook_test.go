package template

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const runbook = "../../../docs/operate.md"

// sections returns the text below each heading of the third order under "## Alarms", by the headings.
func sections(page string) map[string]string {
	_, page, _ = strings.Cut(page, "\n## Alarms\n")
	page, _, _ = strings.Cut(page, "\n## ")
	all := map[string]string{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		all[heading] = body
	}
	return all
}

// section returns the heading for an alarm: that of a loop has AGENT or INDEX in place of the name.
func (t *template) section(alarm string) string {
	for _, agent := range t.agents() {
		if rest, is := strings.CutPrefix(alarm, agent); is {
			return "AGENT" + rest
		}
	}
	for _, index := range stackfile.List(t.Property("Table", "GlobalSecondaryIndexes")) {
		if rest, is := strings.CutPrefix(alarm, stackfile.Text(stackfile.At(index, "IndexName"))); is {
			return "INDEX" + rest
		}
	}
	return alarm
}

// A person who is woken by an alarm finds its name, what it means, what to look at, and what to type.
func TestEachAlarmHasASectionInTheRunbook(t *testing.T) {
	whole, found := load(t, readFile(t, templateFile)), sections(readFile(t, runbook))
	var want []string
	for _, alarm := range whole.Of(alarmKind) {
		want = append(want, whole.section(alarm))
	}
	slices.Sort(want)
	want = slices.Compact(want)
	for _, name := range want {
		body, ok := found[name]
		if !ok {
			t.Errorf("docs/operate.md has no section ### %s under Alarms", name)
		}
		for _, part := range []string{"\n**Means.** ", "\n**Look.** ", "\n**Type.** "} {
			if ok && !strings.Contains(body, part) {
				t.Errorf("docs/operate.md, %s, does not say%q", name, strings.TrimSpace(part))
			}
		}
	}
	for name := range found {
		if !slices.Contains(want, name) {
			t.Errorf("docs/operate.md has a section %s, and the template no such alarm", name)
		}
	}
	if len(found) < 15 {
		t.Errorf("got %d sections, want those of all alarms", len(found))
	}
}

// What the sections send a reader to is there.
func TestTheRunbookHasWhatItNames(t *testing.T) {
	page := readFile(t, runbook)
	for _, m := range regexp.MustCompile(`\]\(#([a-z-]+)\)`).FindAllStringSubmatch(page, -1) {
		heading := strings.ReplaceAll(m[1], "-", " ")
		// Of the page, or of an alarm.
		if !strings.Contains(strings.ToLower(page), "# "+heading+"\n") {
			t.Errorf("docs/operate.md has no section %q", heading)
		}
	}
	for _, name := range []string{"dead letters", "quarantine", "restore", "quota", "rollback"} {
		if !strings.Contains(page, "](#"+strings.ReplaceAll(name, " ", "-")+")") {
			t.Errorf("docs/operate.md leads nobody to %q", name)
		}
	}
}

// description is what an alarm says in the message that wakes somebody: what, what to type, and the section of the runbook.
var description = regexp.MustCompile(`^(.+\.) Type: ((?:aws|makegood|make) .+) - Runbook: https://github\.com/makegood-dev/makegood/blob/main/docs/operate\.md#([a-z]+)$`)

// maxDescription is how long CloudWatch lets one be.
const maxDescription = 1024

// Who is woken has in the message itself what to type first, as the runbook has it, and a link to the alarm's section.
func TestEachAlarmSaysWhatToTypeAndLinksToItsSection(t *testing.T) {
	whole, page := load(t, readFile(t, templateFile)), readFile(t, runbook)
	for _, alarm := range whole.Of(alarmKind) {
		says := stackfile.Text(whole.Property(alarm, "AlarmDescription"))
		parts := description.FindStringSubmatch(says)
		if parts == nil || len(says) > maxDescription {
			t.Errorf("%s says %q: want WHAT. Type: COMMAND - Runbook: LINK, of at most %d bytes", alarm, says, maxDescription)
			continue
		}
		section := whole.section(alarm)
		if want := strings.ToLower(section); parts[3] != want {
			t.Errorf("%s links to #%s, want #%s", alarm, parts[3], want)
		}
		command := strings.ReplaceAll(parts[2], "${AWS::StackName}", "STACK")
		if of, is := strings.CutPrefix(section, "AGENT"); is {
			command = strings.ReplaceAll(command, strings.TrimSuffix(alarm, of), "AGENT")
		}
		if !strings.Contains(page, command) {
			t.Errorf("%s: the runbook does not say %s", alarm, command)
		}
	}
}
