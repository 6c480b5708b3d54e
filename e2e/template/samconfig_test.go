package template

import (
	"regexp"
	"strings"
	"testing"
)

// Tables and keys of TOML, as far as samconfig.toml has them: a reader of all of TOML is not worth a dependency.
var (
	tableLine     = regexp.MustCompile(`^\[(\w+)\.(\w+)\.parameters\]$`)
	overridesLine = regexp.MustCompile(`^parameter_overrides = \[(.*)\]$`)
	overridePart  = regexp.MustCompile(`^"(\w+)=([^"]*)"$`)
)

// overrides gives the parameters of each environment of samconfig.toml.
func overrides(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	environment := ""
	for line := range strings.SplitSeq(readFile(t, "../../samconfig.toml"), "\n") {
		if table := tableLine.FindStringSubmatch(line); table != nil {
			environment = table[1]
		}
		parts := overridesLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		all[environment] = map[string]any{}
		for part := range strings.SplitSeq(parts[1], ", ") {
			pair := overridePart.FindStringSubmatch(part)
			if pair == nil {
				t.Fatalf("samconfig.toml, %s: %s is no parameter and its value", environment, part)
			}
			all[environment][pair[1]] = pair[2]
		}
	}
	return all
}

func TestTheEnvironmentsSetParametersThatThereAre(t *testing.T) {
	source := readFile(t, templateFile)
	known := load(t, source).parameters
	all := overrides(t)
	for _, environment := range []string{"default", "dev", "prod"} {
		if len(all[environment]) == 0 {
			t.Errorf("samconfig.toml sets no parameters for %s", environment)
		}
		for name := range all[environment] {
			if _, ok := known[name]; !ok {
				t.Errorf("samconfig.toml, %s: the template has no parameter %s", environment, name)
			}
		}
	}
	prod, err := parse(source, all["prod"])
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{"IsProtected", "IsReserved", "IsWatched", "HasDashboard"} {
		if !prod.conditions[condition] {
			t.Errorf("in prod the condition %s does not hold", condition)
		}
	}
}
