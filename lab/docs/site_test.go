package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// make site is strict: a page of its navigation that is not in docs/ fails it. And each of its pages has the elements that the theme's
// script for dark colours looks for, which ends with an error in the console otherwise.
func TestTheSiteIsMadeOfTheDocsAlone(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which makes the site")
	}
	const ask = `
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "../../tools/site")
import hooks
for section in hooks.navigation(open("../../docs/README.md", encoding="utf-8").read()):
    for pages in section.values():
        for page in ([pages] if isinstance(pages, str) else [p for one in pages for p in one.values()]):
            print("page", page)
print("head", hooks.on_post_page("<html><head></head>", page=None, config=None))
print("head", hooks.on_post_template("<html><head></head>", template_name="404.html", config=None))
`
	out, err := exec.CommandContext(t.Context(), python, "-c", ask).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, heads := 0, 0
	for line := range strings.Lines(string(out)) {
		what, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case what == "page" && strings.Contains(text, ".."):
			t.Errorf("the navigation has %s, which is no page of docs/", text)
		case what == "page":
			pages++
		case strings.Contains(text, `id="hljs-light"`) && strings.Contains(text, `id="hljs-dark"`):
			heads++
		}
	}
	if pages < 20 || heads != 2 {
		t.Errorf("got %d pages and %d heads with both elements, want most pages of docs/, and 2 heads\n%s", pages, heads, out)
	}
}
