package domain

import (
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// ItemsText shows the counts of a map's items, the rate at which they end, and the time that the rest takes.
func ItemsText(items makegood.Items) string {
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{items.Done, "done"},
		{items.UnderWay, "under way"},
		{items.NotBegun, "not begun"},
		{items.Failed, "failed"},
		{items.Waiting, "before a person"},
		{items.Undone, "undone"},
		{items.Uncounted, "not counted"},
	} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := "1 item"
	if items.All != 1 {
		text = fmt.Sprintf("%d items", items.All)
	}
	if len(counts) > 0 {
		text += ": " + strings.Join(counts, ", ")
	}
	if items.PerSecond > 0 {
		text += fmt.Sprintf("; %s, %s left", rateText(items.PerSecond), time.Duration(items.SecondsLeft)*time.Second)
	}
	return text
}

// rateText shows a rate by the second, the minute or the hour: the first of them that makes it 1 or more.
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 1:
		return fmt.Sprintf("%.1f a second", perSecond)
	case perSecond*60 >= 1:
		return fmt.Sprintf("%.1f a minute", perSecond*60)
	default:
		return fmt.Sprintf("%.1f an hour", perSecond*3600)
	}
}
