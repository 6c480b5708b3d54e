package page

import (
	"net/http"
	"slices"
	"strings"
)

// view is a row of the table of routes: see the package comment.
type view struct {
	// pattern is a pattern of http.ServeMux: a method and a path.
	pattern string
	// nav is the entry of the navigation above it; title names the window, unless load names it.
	nav, title string
	// template is its file in templates/; empty: load returns a goTo, always.
	template string
	load     func(*Page, *http.Request) (any, error)
	// regions are the ids of the elements that live updates replace.
	regions []string
}

// titled is data that names its window.
type titled interface{ Title() string }

// views returns the table.
func views() []view {
	return slices.Concat(
		jobsViews(), jobViews(),
		inboxViews(),
		agentsViews(),
		schedulesViews(),
		workflowsViews(),
		submitViews(),
		welcomeViews(),
	)
}

// navigation are the entries of the navigation, and their paths. An entry without a view is not shown.
var navigation = []link{
	{Name: "Jobs", Path: ""},
	{Name: "Errors", Path: "errors"},
	{Name: "Agents", Path: "agents"},
	{Name: "Schedules", Path: "schedules"},
	{Name: "Workflows", Path: "workflows"},
	{Name: "Submit", Path: "submit"},
}

// link is an entry of the navigation.
type link struct {
	Name, Path string
	Current    bool
}

// navigationOf returns the navigation of a view.
func navigationOf(current string) []link {
	var shown []link
	for _, l := range navigation {
		if hasView(l.Path) {
			l.Current = l.Name == current
			shown = append(shown, l)
		}
	}
	return shown
}

// hasView reports whether the page answers a GET of this path.
func hasView(path string) bool {
	return slices.ContainsFunc(views(), func(v view) bool {
		return v.pattern == "GET /"+path || path == "" && v.pattern == "GET /{$}"
	})
}

// rootOf leads from a path to where the page is mounted.
func rootOf(path string) string {
	if up := strings.Count(path, "/") - 1; up > 0 {
		return strings.Repeat("../", up)
	}
	return "./"
}
