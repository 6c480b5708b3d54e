package command

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
)

// itemLines says how many items of a step with a map there are, why some have failed, and which stand before a person.
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

// groupText says how many items have a reason, the reason, and where one of them is.
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
