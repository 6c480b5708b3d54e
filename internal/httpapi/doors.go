package httpapi

import (
	"cmp"
	"net/http"

	"github.com/makegood-dev/makegood/internal/protocol"
)

// Door is a part of the API that is let to some callers, and not to others. Each route belongs to one.
type Door string

// The doors.
const (
	// Submit takes submissions.
	Submit Door = "submit"
	// Read shows jobs and workflows, and changes nothing.
	Read Door = "read"
	// Operate takes the verbs, and workflow files.
	Operate Door = "operate"
	// Complete takes what is said under the completion token of a step, of whoever holds it.
	Complete Door = "complete"
	// Agents gives agents that run outside of an engine their tasks, takes what they reply, and carries their payloads. No function
	// serves it.
	Agents Door = "agents"
)

// Doors are those of a deployed stack.
func Doors() []Door { return []Door{Submit, Read, Operate} }

// Patterns are those of http.ServeMux, a method and a path, of the routes of a door; of Complete with the page of a link.
func Patterns(door Door) []string {
	var all []string
	for _, r := range routes() {
		if r.door == door {
			all = append(all, r.method+" "+r.path)
		}
	}
	if door == Complete {
		all = append(all, "GET "+linkPattern, "POST "+linkPattern)
	}
	return all
}

// HealthPatterns are those of health and readiness, which say nothing that is secret.
func HealthPatterns() []string { return []string{"GET " + healthPath, "GET " + readyPath} }

// Local is who makes a request where nobody can know better.
const Local = "local"

// claimed takes callers at their word, where nobody knows who they are.
func claimed(unknown string) func(*http.Request) string {
	return func(r *http.Request) string { return cmp.Or(r.Header.Get(protocol.WhoHeader), unknown) }
}
