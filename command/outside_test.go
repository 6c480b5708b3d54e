package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/workflows"
)

func TestAnAgentOutsideTakesThePlaceOfALinkedOne(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(" s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := workflows.Agents(func(string) string { return "" })
	outside, here, err := parseOutside([]string{linked[0].Name() + "=" + token, "elsewhere"}, linked)
	if err != nil || len(outside) != 2 || outside[0].Token != "s3cret" || outside[1].Token != "" {
		t.Errorf("got %v, %v", outside, err)
	}
	if len(here) != len(linked)-1 || here[0].Name() == linked[0].Name() {
		t.Errorf("got %d agents here of %d linked, the first is %s", len(here), len(linked), here[0].Name())
	}
}

func TestAnAgentOutsideThatCannotBeIsRefused(t *testing.T) {
	dir := t.TempDir()
	empty, long := filepath.Join(dir, "empty"), filepath.Join(dir, "long")
	for file, text := range map[string]string{empty: "\n", long: strings.Repeat("x", 1025)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for given, says := range map[string]string{
		"":             "--outside",
		"pay ments":    "pay ments",
		"http":         "built in",
		"a=":           "the token",
		"a=" + empty:   "is empty",
		"a=" + long:    "1025 bytes, the limit is 1024",
		"a=/no/such":   "no such file",
		"twice\ntwice": "given twice",
	} {
		_, _, err := parseOutside(strings.Split(given, "\n"), []agent.Handler(nil))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--outside %q: got %v, want %q", given, err, says)
		}
	}
}
