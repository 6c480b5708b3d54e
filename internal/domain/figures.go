package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// CheckFigures refuses figures of a map that no map can have. Those of a definition are refused in the words of a file.
func CheckFigures(concurrency int, tolerate *makegood.Tolerance) error {
	t := makegood.Tolerance{}
	if tolerate != nil {
		t = *tolerate
	}
	switch {
	case concurrency < 0 || concurrency > limits.MaxConcurrency:
		return fmt.Errorf("concurrency is %d: want 1 to %d", concurrency, limits.MaxConcurrency)
	case t.Items < 0 || t.Items > makegood.MaxItems:
		return fmt.Errorf("tolerate is %d items: want 0 to %d", t.Items, makegood.MaxItems)
	case !(t.Share >= 0 && t.Share < 1):
		return fmt.Errorf("tolerate has a share of %v: want one above 0 and below 1", t.Share)
	case t.Share > 0 && (t.After < 1 || t.After > makegood.MaxItems):
		return fmt.Errorf("tolerate has a share after %d items: want 1 to %d", t.After, makegood.MaxItems)
	case t.Share == 0 && t.After != 0:
		return fmt.Errorf("tolerate has a share after %d items, and no share", t.After)
	case concurrency == 0 && tolerate == nil:
		return errors.New("concurrency or tolerate is missing")
	}
	return nil
}

// noItem is the text of a tolerance of no failure.
const noItem = "none"

// ParseTolerance reads how many items of a map may fail, as people write it: a number, a share with the number from
// which on it counts, such as 1%/500, both with a comma between them, or "none". CheckFigures says whether that can be.
func ParseTolerance(text string) (t makegood.Tolerance, err error) {
	if text == noItem {
		return t, nil
	}
	for _, part := range strings.Split(text, ",") {
		share, after, shared := strings.Cut(part, "%/")
		switch {
		case shared && t.Share == 0:
			err = errors.Join(json.Unmarshal([]byte(share), &t.Share), json.Unmarshal([]byte(after), &t.After))
			t.Share /= 100
		case !shared && t.Items == 0:
			err = json.Unmarshal([]byte(part), &t.Items)
		default:
			err = errors.New("it stands twice")
		}
		if err != nil {
			return t, fmt.Errorf("%.40q: want a number, or a share and the number from which on it counts, such as 1%%/500, or both with a comma between them, or %s", text, noItem)
		}
	}
	return t, nil
}

// ToleranceText writes a tolerance as ParseTolerance reads it.
func ToleranceText(t makegood.Tolerance) string {
	var parts []string
	if t.Items > 0 {
		parts = append(parts, fmt.Sprint(t.Items))
	}
	if t.Share > 0 {
		parts = append(parts, fmt.Sprintf("%.4g%%/%d", 100*t.Share, t.After))
	}
	if len(parts) == 0 {
		return noItem
	}
	return strings.Join(parts, ",")
}

// FiguresText describes those figures of a map that are given.
func FiguresText(concurrency int, tolerate *makegood.Tolerance) string {
	var parts []string
	if concurrency > 0 {
		parts = append(parts, fmt.Sprintf("concurrency %d", concurrency))
	}
	if tolerate != nil {
		parts = append(parts, "tolerate "+ToleranceText(*tolerate))
	}
	return strings.Join(parts, ", ")
}
