package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/api"
)

// A command of one's own says its own name, in its help and in what it advises.
func TestACommandOfOnesOwnSaysItsOwnName(t *testing.T) {
	root := newRoot("trips", nil, nil)
	for _, verb := range append(root.Commands(), root) {
		help := verb.Short + verb.Long + verb.Example + verb.UsageString()
		for _, named := range root.Commands() {
			if strings.Contains(help, "makegood "+named.Name()) {
				t.Errorf("the help of %s says makegood %s", verb.Name(), named.Name())
			}
		}
	}
	list, _, err := root.Find([]string{"list"})
	if err != nil {
		t.Fatal(err)
	}
	_, noFolder := openData(list, t.TempDir())
	for want, err := range map[string]error{
		"is `trips dev` running?":           failed(list, &api.UnreachableError{URL: "http://x", Err: io.EOF}),
		"`trips list` shows what there is":  failed(list, fmt.Errorf("get job x: %w", api.ErrNotFound)),
		"that trips dev or trips run was g": noFolder,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The address of an API that is mounted under a path is that with the path.
func TestAnAddressWithoutItsPathIsNamed(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	root := newRoot("trips", nil, nil)
	root.SetArgs([]string{"list", "--addr", server.URL})
	err := root.ExecuteContext(t.Context())
	if exit := new(exitError); !errors.As(err, &exit) || exit.code != codeUsage ||
		!strings.Contains(err.Error(), server.URL+" answered 404 Not Found") || !strings.Contains(err.Error(), server.URL+"/makegood, for example") {
		t.Errorf("got %v, want the address, and one with a path", err)
	}
}

// Files that are linked are not read again when they change, and dev says so.
func TestDevSaysThatLinkedFilesAreNotReadAgain(t *testing.T) {
	for linked, want := range map[bool]int{true: 1, false: 0} {
		var said strings.Builder
		printServed(&said, "127.0.0.1:1", devOptions{}, nil, linked)
		if got := strings.Count(said.String(), "build it again to change them"); got != want {
			t.Errorf("linked: %v, it says\n%s", linked, &said)
		}
	}
}

// What is not JSON is said with the reason.
func TestAnInputThatIsNotJSONIsSaidWithTheReason(t *testing.T) {
	if _, err := readJSON("--input", nil, "{a"); err == nil || !strings.Contains(err.Error(), "--input is not JSON: invalid character 'a'") {
		t.Errorf("got %v", err)
	}
}
