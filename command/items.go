package command

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
)

// itemLines shows the counts of a map's items, the items that stand before a person, and the reasons of failures.
func itemLines(items *makegood.Items, indent string) []string {
	if items == nil {
		return nil
	}
	lines := []string{indent + domain.ItemsText(*items)}
	for _, g := range items.Stands {
		lines = append(lines, indent+"  before a person: "+groupText(g))
	}
	for _, g := range items.Failures {
		lines = append(lines, indent+"  failed: "+groupText(g))
	}
	return lines
}

// groupText shows the size of a group, its reason, and the place of its example.
func groupText(g makegood.ItemGroup) string {
	if g.Items == 0 {
		return plain.Line(fmt.Sprintf("job %s: %s", g.Job, g.Reason))
	}
	where := "job " + g.Job
	if g.Step != "" {
		where = "step " + g.Step + " of " + where
	}
	example := "item"
	if g.Items > 1 {
		example = "as item"
	}
	reason := g.Reason
	if g.Kind != "" {
		reason += " (" + g.Kind + ")"
	}
	return plain.Line(fmt.Sprintf("%d, %s %d: %s; %s", g.Items, example, g.Index, reason, where))
}
