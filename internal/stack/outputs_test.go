package stack

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// The template's outputs, the command and the page about it say the same.
func TestTheOutputsAreThoseOfTheTemplateAndTheDocument(t *testing.T) {
	source, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Outputs map[string]yaml.Node `yaml:"Outputs"`
	}
	if err := yaml.Unmarshal(source, &template); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/doors.md")
	if err != nil {
		t.Fatal(err)
	}
	for variable, key := range Outputs() {
		if _, ok := template.Outputs[key]; !ok {
			t.Errorf("template.yaml has no output %s", key)
		}
		for _, name := range []string{"`" + key + "`", "`" + variable + "`"} {
			if !strings.Contains(string(page), name) {
				t.Errorf("docs/doors.md does not name %s", name)
			}
		}
	}
}

// Every metric is explained.
func TestTheDocumentNamesEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range deployed.Metrics() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/operate.md does not name the metric %s", name)
		}
	}
}
