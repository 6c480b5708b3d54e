package protocol

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/api"
)

// Facets returns all that jobs can be counted by.
func Facets() []api.Facet {
	return []api.Facet{api.ByState, api.ByWorkflow, api.ByDefinition, api.ByAgent, api.ByTenant, api.ByStep, api.ByReason}
}

// GroupHours is how many hours api.Group.Hours has.
const GroupHours = 12

// CheckFacets refuses, with an *api.InvalidError, facets that there are not, none, and one twice.
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
