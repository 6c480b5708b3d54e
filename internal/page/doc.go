// Package page is the page: what is under way, what needs somebody, and every verb, in a browser. It is a client of the HTTP
// API and of nothing below it, so whatever it shows a program can get, and it looks the same over an engine in this process
// and over a deployed stack. It decides nothing and keeps nothing.
//
// # A view
//
// A view is a row of the table in views.go:
//
//	{pattern: "GET /agents", nav: "Agents", title: "Agents", template: "agents.html", load: (*Page).agents, regions: []string{"agents"}}
//
// The pattern is that of http.ServeMux, without a prefix: under which path the page is mounted it does not know.
//
// The load function reads what the template shows, with p.Jobs and the request's context, and returns it. The error of a
// client becomes a page that says so, with the status of the API (problem.go); a *problem is for what load knows better. Data
// with a Title method names the window.
//
// The template is a file of templates/ that defines "main". Its dot is a *frame: what load returned is .View, and links are
// written with .Root before them, href="{{.Root}}jobs/{{.ID}}", or $.Root within a range. What all share is in parts.html:
// {{template "icon" "error"}}, {{template "state" .Mark}}, {{template "time" (list .At $.Now)}}, {{template "since" (list .At $.Now)}},
// {{template "keys"}}. The functions are in words.go: count, many, span, clock, stamp, day, short, pretty.
//
// The regions are the ids of elements that live updates replace. For each the template file defines a block of that name,
// which is the inside of the element:
//
//	<tbody id="agents" data-live>{{template "agents" .}}</tbody>
//	{{define "agents"}} ... {{end}}
//
// Nothing else is to be done for it to be live: live.go runs load again, and sends the regions whose bytes have changed. So a
// region depends on what load returns and on nothing else: no random ids, and of what goes on (3 s ago) a <time data-since>,
// which page.js counts on. A region with data-rows has children with ids (id="job-o-1"), which change one by one, in place;
// new ones wait behind a note.
//
// # A verb
//
// A verb is a row whose pattern is a POST: load does it and returns a goTo, the place that is shown then (303), or data for a
// template, such as a dry run. Its form says method="post" action="{{.Root}}jobs/o-1/cancel"; r.FormValue reads it, and its
// size is bounded. A form of another origin never arrives (internal/origin).
//
// # The policy
//
// No inline style or script and no data URL: geometry is SVG attributes, colours are classes (a state's name in lower case sets
// --c), behaviour is page.js with data- attributes. Everything reads, searches and acts without script.
//
// A view's file is VIEW.go, with VIEW_test.go beside it against an engine and a server (world_test.go).
package page
