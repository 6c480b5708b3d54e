package protocol

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/api"
)

// Facets returns all facets by which jobs can be counted.
func Facets() []api.Facet {
	return []api.Facet{api.ByState, api.ByWorkflow, api.ByDefinition, api.ByAgent, api.ByTenant, api.ByStep, api.ByReason}
}

// GroupHours is the number of hours in api.Group.Hours.
const GroupHours = 12

// CheckFacets refuses, with an *api.InvalidError, unknown facets, an empty list, and a facet given twice.
func CheckFacets(by []api.Facet) error {
	if len(by) == 0 {
		return &api.InvalidError{Message: fmt.Sprintf("by: want one or more of %v", Facets())}
	}
	for i, facet := range by {
		if !slices.Contains(Facets(), facet) || slices.Contains(by[:i], facet) {
			return &api.InvalidError{Message: fmt.Sprintf("by: %.40q: want one or more of %v, each once", facet, Facets())}
		}
	}
	return nil
}
