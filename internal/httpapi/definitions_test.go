package httpapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// orderHash is the hash of the definition of order.
func orderHash() string {
	compiled, err := workflowfile.Parse("order", []byte(order))
	if err != nil {
		panic(err)
	}
	return compiled.Hash
}

// A job names a definition by its hash; whoever shows the job needs what that says.
func TestADefinitionIsReadByItsHash(t *testing.T) {
	w := newWorld(t)
	workflows, err := w.client.Workflows(t.Context())
	check(t, err)
	for _, known := range workflows {
		d, err := w.client.Definition(t.Context(), known.Definition)
		check(t, err)
		if d.Name != known.Name || d.Definition != known.Definition || d.Workflow.Name != known.Name || len(d.Workflow.Steps) == 0 {
			t.Errorf("%s: got %+v", known.Name, d)
		}
		again, err := workflowfile.Parse("source", []byte(d.Source))
		check(t, err)
		if again.Hash != known.Definition {
			t.Errorf("%s: the source is another definition, %s:\n%s", known.Name, again.Hash, d.Source)
		}
	}
	for _, hash := range []string{strings.Repeat("0", 32), "current", "..", "a b"} {
		if _, err := w.client.Definition(t.Context(), hash); !errors.Is(err, api.ErrNoDefinition) {
			t.Errorf("%q: got %v, want that there is none", hash, err)
		}
	}
}

func (b broken) Definition(context.Context, string) ([]byte, error) { return nil, b.err }

// defining are the conversations about definitions.
func defining() []conversation {
	return []conversation{
		{"GET", "/api/definitions/{hash}", "/api/definitions/" + orderHash(), "", "", 200},
		{"GET", "/api/definitions/{hash}", "/api/definitions/nobody", "", "", 404},
	}
}
