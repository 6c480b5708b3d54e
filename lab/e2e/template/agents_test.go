package template

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/scaffold"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// CloudFormation refuses a template of more resources than it takes, when all of it was built and uploaded: it is refused here, with how many agents
// there may be.
func TestATemplateThatCloudFormationWouldNotTakeIsRefused(t *testing.T) {
	var agents []string
	for len(agents) < scaffold.MaxAgents {
		agents = append(agents, fmt.Sprint("agent", len(agents)))
	}
	text, err := scaffold.Template(agents)
	if err != nil {
		t.Fatal(err)
	}
	file, err := stackfile.Parse(string(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	one, err := scaffold.Template(agents[:1])
	if err != nil {
		t.Fatal(err)
	}
	small, err := stackfile.Parse(string(one), nil)
	if err != nil {
		t.Fatal(err)
	}
	each := (file.Made() - small.Made()) / (len(agents) - 1)
	if all := file.Made(); all > stackfile.MaxResources || all+each <= stackfile.MaxResources {
		t.Errorf("%d agents make %d resources, %d each, want as many as there is room for in %d", len(agents), all, each, stackfile.MaxResources)
	}
	page, err := os.ReadFile("../../../docs/deploy.md")
	if says := fmt.Sprintf("room for %d agents", scaffold.MaxAgents); err != nil || !strings.Contains(string(page), says) {
		t.Errorf("docs/deploy.md does not say %q: %v", says, err)
	}
	_, err = scaffold.Template(append(agents, "onemore"))
	if want := fmt.Sprintf("%d agents make %d resources", len(agents)+1, file.Made()+each); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with one more: got %v, want it refused: %s", err, want)
	}
}
