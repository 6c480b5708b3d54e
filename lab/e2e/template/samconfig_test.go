package template

import (
	"testing"

	"github.com/makegood-dev/makegood/lab/e2e/sam"
)

// overrides returns the parameters of each environment of samconfig.toml.
func overrides(t *testing.T) map[string]map[string]any {
	t.Helper()
	environments, err := sam.Overrides(readFile(t, "../../../samconfig.toml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for environment, values := range environments {
		all[environment] = map[string]any{}
		for name, value := range values {
			all[environment][name] = value
		}
	}
	return all
}

func TestTheEnvironmentsSetParametersThatThereAre(t *testing.T) {
	source := readFile(t, templateFile)
	known := load(t, source).Parameters
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
	for _, condition := range []string{"IsProtected", "IsWatched", "HasDashboard"} {
		if !prod.Conditions[condition] {
			t.Errorf("in prod the condition %s does not hold", condition)
		}
	}
	// The first deployment of a new account, which has ten in all, would fail over what is reserved.
	if prod.Conditions["IsReserved"] {
		t.Error("prod reserves concurrency, and nobody asked for it")
	}
}
