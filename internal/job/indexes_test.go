package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

func TestItemsAreNamedByPlacesAndRanges(t *testing.T) {
	most := fmt.Sprintf("0-%d", limits.MaxIndexes-1)
	for text, want := range map[string]string{
		"3": "3", "17-20,3": "3,17-20", "1,0, 2 ,2,4-4": "0-2,4", "5-6,7-9,1": "1,5-9", most: most, "99999": "99999",
		"": "names no items", "x": "names no items", "3,": "names no items", "-1": "names no items", "4-3": "names no items",
		"1.5": "names no items", "+3": "names no items", "99999999999999999999": "names no items", "100000": "there is no item 100000",
		fmt.Sprintf("0-%d", limits.MaxIndexes): "more than 1000 items", most + ",4": "more than 1000 items",
	} {
		got, err := job.ReadIndexes(text)
		if (err != nil || string(got) != want) && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %q, %v, want %s", text, got, err, want)
		}
	}
}

// The items of each part are named from its first one on, and those of all parts together are all that were named.
func TestEachPartHasItsOwnOfTheNamedItems(t *testing.T) {
	all := job.IndexesOf([]int{0, 7, 8, 9, 10, 99, 100, 101, 250, makegood.MaxItems - 1})
	var list []int
	for from := 0; from < makegood.MaxItems; from += limits.PartItems {
		for _, i := range all.Within(from, limits.PartItems).List() {
			list = append(list, from+i)
		}
	}
	if !slices.Equal(list, all.List()) || all != "0,7-10,99-101,250,99999" {
		t.Errorf("%s: got %v", all, list)
	}
	if got := all.Within(100, 100); got != "0-1" {
		t.Errorf("got %q of the second part, want 0-1", got)
	}
	if got := all.Within(11, 80); got != "" {
		t.Errorf("got %q, want none", got)
	}
}
