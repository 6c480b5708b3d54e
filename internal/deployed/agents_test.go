package deployed

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
)

// A function that is given no agent where it expects one says so when it starts.
func TestAnAgentThatIsNilIsRefused(t *testing.T) {
	_, err := readAgent(func(string) string { return "" }, []agent.Handler{nil})
	if err == nil || !strings.Contains(err.Error(), "the agent at 0 is nil") {
		t.Errorf("got %v, want it refused", err)
	}
}
