// Package page is the page: running work, jobs that wait for a person, and every verb, in a browser. It is a client of
// the HTTP API and of no layer below, so a program can get everything that it shows, and it looks the same over an
// engine in this process and over a deployed stack. It makes no decisions and keeps no state.
//
// # A view
//
// A view is a row of the table in views.go:
//
//	{pattern: "GET /agents", nav: "Agents", title: "Agents", template: "agents.html",
//		load: (*Page).agents, regions: []string{"agents"}}
//
// The pattern is that of http.ServeMux, without a prefix: the page does not know the path that it is mounted under.
//
// The load function reads the data of the template, with p.Jobs and the request's context, and returns it. The error of
// a client becomes a page with its text and the status of the API (problem.go); a *problem is for errors that load can
// explain better. Data with a Title method names the window.
//
// The template is a file of templates/ that defines "main". Its dot is a *frame: .View is the result of load, and links
// are written with .Root before them, href="{{.Root}}jobs/{{.ID}}", or $.Root within a range. Shared parts are in
// parts.html: {{template "icon" "error"}}, {{template "state" .Mark}}, {{template "time" (list .At $.Now)}},
// {{template "since" (list .At $.Now)}}, {{template "keys"}}. The functions are in words.go: count, many, span, clock,
// stamp, day, short, pretty.
//
// The regions are the ids of elements that live updates replace. For each the template file defines a block of that
// name, which is the inside of the element:
//
//	<tbody id="agents" data-live>{{template "agents" .}}</tbody>
//	{{define "agents"}} ... {{end}}
//
// A live view needs no more code: live.go runs load again, and sends the regions with changed bytes. So a region
// depends only on the result of load: no random ids, and a running time (3 s ago) is a <time data-since>, which page.js
// counts on. A region with data-rows has children with ids (id="job-o-1"), which change one by one, in place; new ones
// wait behind a note.
//
// # A verb
//
// A verb is a row with a POST pattern: load does it and returns a goTo, the place that is shown then (303), or data for
// a template, such as a dry run. Its form says method="post" action="{{.Root}}jobs/o-1/cancel"; r.FormValue reads it,
// and its size is bounded. A form of another origin never arrives (internal/origin).
//
// # The policy
//
// No inline style or script and no data URL: geometry is SVG attributes, colours are classes (a state's name in lower
// case sets --c), behaviour is page.js with data- attributes. Every view reads, searches and acts without script.
//
// A view's file is VIEW.go, with VIEW_test.go beside it against an engine and a server (world_test.go).
package page
