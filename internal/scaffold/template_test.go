package scaffold

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write template.yaml and the project's samconfig.toml anew, from those of the repository")

// ours are the agents of the repository, as its template lists them.
var ours = []string{"inventory", "payments", "shipping", "http", "hello"}

const header = `# Makegood on AWS: what runs the workflows of this project. makegood template printed it, and makegood template --check says
# what it lacks for a newer version. It is yours: add what you need.
#
# To add an agent: give it a handler, and add its name to Metadata, Agents below. Names are lower-case letters and digits.
# The loop makes its queue, dead letters, function, role, permissions, log group and alarms; nothing else changes.
`

// anybodys returns a template without what is this repository's own: its agents, and the shop of its sample.
func anybodys(t *testing.T, source string) string {
	t.Helper()
	for _, change := range []struct{ pattern, with string }{
		{`(?s)\A#.*?\n(AWSTemplateFormatVersion)`, header + "$1"},
		{`(?m)^  Agents: &agents \[.*\]$`, "  Agents: &agents [" + listMark + "]"},
		{`(?m)(^    \w+: \{MemorySize: .*\}\n)+`, rowsMark},
		{`(?m)^  Shop:\n(    .*\n)+`, ""},
		{`(?m)^ +MAKEGOOD_SHOP: .*\n`, ""},
	} {
		pattern := regexp.MustCompile(change.pattern)
		if n := len(pattern.FindAllString(source, -1)); n != 1 {
			t.Fatalf("template.yaml has %s %d times, want it once", change.pattern, n)
		}
		source = pattern.ReplaceAllString(source, change.with)
	}
	return source
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What makegood template prints is what this repository deploys, but for its agents' rows and the shop of its sample.
func TestTheTemplateIsThatOfTheRepository(t *testing.T) {
	config := readFile(t, "../../samconfig.toml")
	config = strings.ReplaceAll(strings.ReplaceAll(config, "makegood-", "<<.Name>>-"), " docs/deploy.md explains.", "")
	config = strings.ReplaceAll(config, " (docs/operate.md, Quota)", "")
	for name, want := range map[string]string{
		"template.yaml": anybodys(t, readFile(t, "../../template.yaml")), "project/samconfig.toml.tmpl": config,
	} {
		if *rewrite {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if readFile(t, name) != want {
			t.Errorf("%s is not that of the repository: run go generate ./internal/scaffold", name)
		}
	}
}

func TestTheTemplateOfTheRepositoryIsOfThisVersion(t *testing.T) {
	got, err := Compare([]byte(readFile(t, "../../template.yaml")), ours)
	if err != nil || len(got.Lacks)+len(got.Differs) > 0 {
		t.Errorf("got %+v, %v, want nothing", got, err)
	}
	if whole := printed(t, ours...); !strings.Contains(whole, "&agents ["+strings.Join(ours, ", ")+"]\n") {
		t.Error("the printed template does not list the agents")
	}
}

func printed(t *testing.T, agents ...string) string {
	t.Helper()
	text, err := Template(agents)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATemplateIsForAgentsThatAFunctionCanBeNamedAfter(t *testing.T) {
	for _, agents := range [][]string{nil, {"car-hire"}, {"a", "b", "a"}, {""}} {
		if got, err := Template(agents); err == nil {
			t.Errorf("%q: got %.40s, want an error", agents, got)
		}
	}
}

// What is taken away is named, wherever it stood; what is added or set otherwise is not lacking.
func TestWhatATemplateLacksIsNamed(t *testing.T) {
	whole := printed(t, "a", "b")
	for _, c := range []struct {
		old, with string
		lacks     []string
		differs   []string
	}{
		{"", "", nil, nil},
		{"Parameters:\n", "Parameters:\n  Mine: {Type: String}\n", nil, nil},
		{"    Default: 16\n", "    Default: 32\n", nil, nil},
		{"Concurrency: 10}\n", "Concurrency: 20}\n", nil, nil},
		{"  LogLevel:\n    Type", "  Level:\n    Type", []string{"Parameters.LogLevel"}, nil},
		{"  DoorReads:\n", "  DoorLooks:\n", []string{"Resources.DoorReads"}, nil},
		{"&agents [a, b]", "&agents [b, c]", []string{"Metadata.Agents: the agent a"}, nil},
		{"    a: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10}\n", "", nil, nil},
		{"        MAKEGOOD_SHARDS: !Ref Shards\n", "", []string{"Globals.Function.Environment.Variables.MAKEGOOD_SHARDS"}, nil},
		{
			"[dynamodb:UpdateItem, dynamodb:GetItem]", "[dynamodb:GetItem, dynamodb:Query]",
			[]string{"Resources.Fn::ForEach::Agents.${Agent}AgentRole.Properties.Policies[PolicyName agent].PolicyDocument.Statement[Sid Claim].Action: dynamodb:UpdateItem"},
			nil,
		},
		{"- Sid: TakeTasks", "- Sid: Take", []string{
			"Resources.Fn::ForEach::Agents.${Agent}AgentRole.Properties.Policies[PolicyName agent].PolicyDocument.Statement[Sid TakeTasks]",
		}, nil},
		{"          RecursiveLoop: Allow\n          ReservedConcurrentExecutions: !If [IsReserved, !FindInMap [Agents", "          RecursiveLoop: Terminate\n          ReservedConcurrentExecutions: !If [IsReserved, !FindInMap [Agents", nil, []string{"Resources.Fn::ForEach::Agents.${Agent}Agent.Properties.RecursiveLoop"}},
		{"MAKEGOOD_LOG_LEVEL: !Ref LogLevel", "MAKEGOOD_LOG_LEVEL: DEBUG", nil, []string{"Globals.Function.Environment.Variables.MAKEGOOD_LOG_LEVEL"}},
	} {
		if !strings.Contains(whole, c.old) {
			t.Errorf("the template has no %q", c.old)
			continue
		}
		got, err := Compare([]byte(strings.Replace(whole, c.old, c.with, 1)), []string{"a", "b"})
		if err != nil || !slices.Equal(got.Lacks, c.lacks) || !slices.Equal(got.Differs, c.differs) {
			t.Errorf("%q for %q: got\n%q, %v, want\n%q and %q", c.with, c.old, got, err, c.lacks, c.differs)
		}
	}
}

func TestWhatIsNoTemplateIsRefused(t *testing.T) {
	for _, source := range []string{"", "[]", "a: [", "x"} {
		if got, err := Compare([]byte(source), ours); err == nil {
			t.Errorf("%q: got %+v, want an error", source, got)
		}
	}
}

func TestTheMarksAreFilled(t *testing.T) {
	if text := printed(t, "a"); bytes.Contains([]byte(text), []byte("<<")) {
		t.Error("the template has marks left")
	}
}

// The function of an agent that runs outside takes no tasks; those of the others do.
func TestAnAgentOutsideTakesNoTasksOnLambda(t *testing.T) {
	text, err := Template([]string{"studio:outside", "http"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Agents: &agents [studio, http]\n", "    studio: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10, Takes: false}\n",
		"    http: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10}\n", "Enabled: !FindInMap [Agents, !Ref Agent, Takes, {DefaultValue: true}]\n",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("the template has %q %d times, want it once", want, strings.Count(string(text), want))
		}
	}
	if _, err := Template([]string{"studio:outside", "studio"}); err == nil {
		t.Error("an agent that is named twice is taken")
	}
	found, err := Compare(text, []string{"studio:outside", "http"})
	if err != nil || len(found.Lacks) != 0 {
		t.Errorf("compared with itself it lacks %v, %v", found.Lacks, err)
	}
}
