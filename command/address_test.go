package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A shell that has MAKEGOOD_ADDR needs no --addr, and every hint says where it works, so that it can be pasted anywhere.
func TestCommandsThatAreOfferedWorkWhereTheyArePasted(t *testing.T) {
	url := thrifty(t)
	t.Setenv(addrVariable, url)
	wants(t, codeOtherwise, "Error", "submit", "order", "--id", "o-1", "--input", `{"total":9000}`, "--wait")
	_, offered, _ := ask(t, "errors")
	at := strings.Index(offered, "makegood list ")
	if at < 0 || !strings.Contains(offered[at:], "--addr "+url) {
		t.Fatalf("errors offers\n%s\nwant a command with --addr %s", offered, url)
	}
	wants(t, codeUsage, "`makegood list --addr "+url+"` shows what there is", "get", "nothing")
	t.Setenv(addrVariable, "127.0.0.1:1")
	wants(t, 0, "o-1", strings.Fields(strings.SplitN(offered[at:], "\n", 2)[0])[1:]...)
	wants(t, 0, "o-1", "list", "--addr", url)
	t.Setenv("MAKEGOOD_STACK", "shop")
	wants(t, codeUsage, "both MAKEGOOD_ADDR and MAKEGOOD_STACK are set", "list")
}

// The agents of an engine are known to validate, which asks for them, and a misspelt one is named.
func TestValidateKnowsTheAgentsOfAnEngine(t *testing.T) {
	url := thrifty(t)
	file := filepath.Join(t.TempDir(), "x.yaml")
	must(t, os.WriteFile(file, []byte("name: x\nsteps: [{name: a, agent: stock}]\n"), 0o600))
	wants(t, codeUsage, `no agent "stock"`, "validate", file)
	wants(t, 0, "ok, workflow x", "validate", "--addr", url, file)
	must(t, os.WriteFile(file, []byte("name: x\nsteps: [{name: a, agent: stok}]\n"), 0o600))
	wants(t, codeUsage, `no agent "stok": did you mean "stock"?`, "validate", "--addr", url, file)
}

// An address where something else answers is bad usage, said at once.
func TestAnAPIThatIsNoneIsToldSo(t *testing.T) {
	for status, want := range map[int]string{http.StatusOK: "is no Makegood API", http.StatusNotFound: "is perhaps not a Makegood"} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<!doctype html><title>a shop</title>"))
		}))
		wants(t, codeUsage, want, "list", "--addr", other.URL)
		other.Close()
	}
}
