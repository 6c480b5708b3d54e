package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns all documents for people, by their names from the root of the repository. What is made, installed or fetched is
// left out.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && (base == "node_modules" || base == "testdata" || base == "dist" || base == "bin" || strings.HasPrefix(base, ".") && base != "..") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		all[filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("../../")))] = string(text)
		return err
	})
	if err != nil || len(all) < 40 {
		t.Fatalf("got %d pages, %v", len(all), err)
	}
	return all
}

func TestEveryLinkInTheDocsLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for _, broken := range brokenLinks(all, func(name string) bool {
		_, err := os.Stat(filepath.Join("../..", filepath.FromSlash(name)))
		return err == nil
	}) {
		t.Error(broken)
	}
}

// Whoever looks for a page finds it in the index, and the site has it in its navigation, which is made of the index.
func TestTheIndexOfTheDocsHasEveryPage(t *testing.T) {
	index := linksOf(read(t, "docs/README.md"))
	for name := range pages(t) {
		below, is := strings.CutPrefix(name, "docs/")
		if is && below != "README.md" && !strings.HasPrefix(below, "decisions/") && !slices.Contains(index, below) {
			t.Errorf("docs/README.md does not lead to %s", below)
		}
	}
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quotedCode = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
)

// linksOf returns what a page leads to.
func linksOf(text string) []string {
	var all []string
	for _, m := range link.FindAllStringSubmatch(quotedCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), -1) {
		all = append(all, m[1])
	}
	return all
}

// anchorsOf returns the names that a page's headings have, as a forge makes them.
func anchorsOf(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(m[1], "")
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(name), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// brokenLinks finds the links of pages that lead to no file, or to no heading. Addresses elsewhere are not asked: a test has no
// network.
func brokenLinks(all map[string]string, isThere func(name string) bool) []string {
	var broken []string
	for name, text := range all {
		for _, to := range linksOf(text) {
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			page, isPage := all[target]
			switch {
			case !isPage && !isThere(target):
				broken = append(broken, fmt.Sprintf("%s: %s leads to nothing", name, to))
			case isPage && anchor != "" && !slices.Contains(anchorsOf(page), anchor):
				broken = append(broken, fmt.Sprintf("%s: %s: %s has no such heading", name, to, target))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

func TestALinkToNothingIsFound(t *testing.T) {
	all := map[string]string{
		"docs/a.md": "# A page\n\n[b](b.md#what-it-is) [gone](c.md) [code](../x.go) [no](b.md#nothing) [here](#a-page) [there](#there)\n" +
			"`[not](one.md)` [web](https://example.org/x)\n\n```\n[nor](this.md)\n```\n",
		"docs/b.md": "## What `it` is\n",
	}
	got := strings.Join(brokenLinks(all, func(name string) bool { return name == "x.go" }), "\n")
	want := "docs/a.md: #there: docs/a.md has no such heading\ndocs/a.md: b.md#nothing: docs/b.md has no such heading\ndocs/a.md: c.md leads to nothing"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
