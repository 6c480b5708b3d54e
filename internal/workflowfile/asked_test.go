package workflowfile_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Whoever is refused because nobody would be asked reads who that is, and how to register them.
func TestWhoIsAskedMustBeRegistered(t *testing.T) {
	c, err := workflowfile.Parse("x.yaml", []byte("name: x\nsteps: [{name: ok, agent: approval, with: {choices: [go, stop]}, waiting: {ask: clerk}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckAsked([]string{"boss", "clerk"}); err != nil {
		t.Errorf("registered: got %v, want nil", err)
	}
	err = c.CheckAsked([]string{"boss"})
	for _, want := range []string{"step ok", `"clerk"`, "--reply clerk=URL", `["boss"]`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not registered: got %v, want %s in it", err, want)
		}
	}
}
