package view

import (
	"cmp"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
)

// Agents returns agents by their names, each with its pause and its limit.
func Agents(all []api.Agent, held []holds.Counted) []api.Agent {
	sorted := append([]api.Agent{}, all...)
	slices.SortFunc(sorted, func(a, b api.Agent) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		for _, h := range held {
			if h.Name != sorted[i].Name {
				continue
			}
			shown := Hold(h)
			switch h.Kind {
			case makegood.HoldAgent:
				sorted[i].Hold = &shown
			case makegood.HoldLimit:
				sorted[i].Limit = &shown
			}
		}
	}
	return sorted
}
