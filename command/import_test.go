package command

import (
	"strings"
	"testing"
)

// A command line of an earlier release is answered with what to type, whatever its flags are.
func TestImportSaysHowTheImporterIsRun(t *testing.T) {
	for _, args := range [][]string{
		{"import"}, {"import", "order.asl.json", "--check", "--json"}, {"import", "-", "--machine", "M", "--out=orders"},
	} {
		code, stdout, stderr := ask(t, args...)
		if code != codeUsage || stdout != "" || !strings.Contains(stderr, "\n  go run github.com/makegood-dev/makegood/importer/cmd/makegood-import order.asl.json --check\n") {
			t.Errorf("%q: got %d, %q and %q, want %d and what to type", args, code, stdout, stderr, codeUsage)
		}
	}
}
