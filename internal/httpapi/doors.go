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
	// Read shows jobs and workflows, and changes neither.
	Read Door = "read"
	// Operate takes the verbs, and workflow files.
	Operate Door = "operate"
	// Complete takes the answers of the holder of a step's completion token.
	Complete Door = "complete"
	// Agents gives outside agents their tasks, takes their replies, and carries their payloads. No function serves it.
	Agents Door = "agents"
)

// Doors are the doors of a deployed stack.
func Doors() []Door { return []Door{Submit, Read, Operate} }

// Patterns returns the patterns of a door's routes for http.ServeMux; Complete includes the page of a link.
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

// HealthPatterns returns the patterns of health and readiness, whose answers hold no secret.
func HealthPatterns() []string { return []string{"GET " + healthPath, "GET " + readyPath} }

// Local is the caller's name where the name cannot be known.
const Local = "local"

// claimed takes the name that callers give, where no login identifies them.
func claimed(unknown string) func(*http.Request) string {
	return func(r *http.Request) string { return cmp.Or(r.Header.Get(protocol.WhoHeader), unknown) }
}
