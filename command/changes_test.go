package command

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/stack"
)

// Where changes were lost, the stream offers the command that shows how the job stands, at the address that is asked.
func TestLostChangesOfferTheJob(t *testing.T) {
	for _, c := range []struct{ addr, stack, want string }{
		{"", "", "7 changes were lost: `makegood get o-1` shows how the job stands"},
		{"127.0.0.1:1", "", "7 changes were lost: `makegood get o-1 --addr 127.0.0.1:1` shows how the job stands"},
		// get would ask the stack.
		{"", "shop-prod", "7 changes were lost: `makegood get o-1 --addr 127.0.0.1:4777` shows how the job stands"},
	} {
		t.Setenv(stack.Variable, c.stack)
		t.Setenv(addrVariable, "")
		root := newRoot("makegood", nil, nil)
		cmd, _, err := root.Find([]string{"changes"})
		if err != nil {
			t.Fatal(err)
		}
		if c.addr != "" {
			if err := cmd.Flags().Set("addr", c.addr); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		cmd.SetOut(&out)
		if err := printChanges(cmd, strings.NewReader(`data: {"job":"o-1","number":9,"lost":7}`+"\n\n"), false); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("at %q: got %q, %v, want %q", c.addr, out.String(), err, c.want)
		}
	}
}
