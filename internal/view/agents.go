package view

import (
	"cmp"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
)

// Agents returns agents by their names, each with how it is paused.
func Agents(all []api.Agent, held []holds.Counted) []api.Agent {
	sorted := append([]api.Agent{}, all...)
	slices.SortFunc(sorted, func(a, b api.Agent) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		for _, h := range held {
			if h.Kind == makegood.HoldAgent && h.Name == sorted[i].Name {
				shown := Hold(h)
				sorted[i].Hold = &shown
			}
		}
	}
	return sorted
}
