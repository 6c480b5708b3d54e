package thief

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

//go:generate go test . -run Docs -rewrite

var rewrite = flag.Bool("rewrite", false, "write what the docs show of the policies anew")

const root = "../../"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// policies are those of the template, and those that the docs show.
func policies(t *testing.T) *iam.Policies {
	t.Helper()
	p, err := iam.Load(read(t, "template.yaml"), iam.Everything("create"), World())
	if err != nil {
		t.Fatal(err)
	}
	for role, shown := range map[string]struct{ page, heading string }{
		Transaction: {"docs/doors.md", "### A submission in a transaction of your own"}, Message: {"docs/doors.md", "### A submission by message"},
		DeadLetters: {"docs/dead-letters.md", "## Who may"},
	} {
		if err := p.Shown(role, read(t, shown.page), shown.heading); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// Nothing is denied that a role needs, and everything that a thief of it would try.
func TestAThiefOfARoleMayDoWhatIsSaidOfItAndNoMore(t *testing.T) {
	for _, found := range Wrong(t.Context(), policies(t)) {
		t.Error(found)
	}
}

func TestWhatAThiefOfEachRoleMayIsInTheDocs(t *testing.T) {
	sameAs(t, "docs/security.md", "what a thief of each role may", Table(t.Context(), policies(t)))
}

// sameAs compares what a page shows between two marks with what it should show, or writes it there.
func sameAs(t *testing.T, name, what, want string) {
	t.Helper()
	begin, end := "<!-- "+what+": made by lab/thief -->\n", "<!-- end -->\n"
	page := read(t, name)
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for %s", name, what)
	}
	whole := before + begin + "\n" + want + "\n" + end + after
	switch {
	case page == whole:
	case *rewrite:
		if err := os.WriteFile(root+name, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show %s: run go generate ./lab/thief", name, what)
	}
}
