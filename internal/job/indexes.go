package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Indexes names items of a map by their places from 0, in ascending order: "3,17-20". Empty: it names none.
type Indexes string

// IndexesOf names the items of a list.
func IndexesOf(list []int) Indexes {
	var text strings.Builder
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	for begin := 0; begin < len(list); {
		end := begin
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if begin > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(list[begin]))
		if end > begin {
			text.WriteString("-" + strconv.Itoa(list[end]))
		}
		begin = end + 1
	}
	return Indexes(text.String())
}

// ReadIndexes reads what a person has written: items and ranges in any order, as often as they like.
func ReadIndexes(text string) (Indexes, error) {
	var list []int
	for _, one := range strings.Split(text, ",") {
		from, to, ok := ends(strings.TrimSpace(one))
		switch {
		case !ok || to < from:
			return "", fmt.Errorf("%.40q names no items: want places from 0, such as 3 or 17-20", one)
		case to >= makegood.MaxItems:
			return "", fmt.Errorf("there is no item %d: a list has at most %d", to, makegood.MaxItems)
		case len(list)+to-from >= limits.MaxIndexes:
			return "", fmt.Errorf("more than %d items are named, which is the limit of one request", limits.MaxIndexes)
		}
		for ; from <= to; from++ {
			list = append(list, from)
		}
	}
	return IndexesOf(list), nil
}

// ends reads 3 or 17-20.
func ends(text string) (from, to int, ok bool) {
	first, last, is := strings.Cut(text, "-")
	if !is {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 31)
	high, other := strconv.ParseUint(last, 10, 31)
	return int(low), int(high), err == nil && other == nil
}

// List has the items, in ascending order.
func (x Indexes) List() (list []int) {
	if x == "" {
		return nil
	}
	for one := range strings.SplitSeq(string(x), ",") {
		from, to, _ := ends(one)
		for ; from <= to; from++ {
			list = append(list, from)
		}
	}
	return list
}

// Within are the named ones of n items that begin with the item from, counted from there.
func (x Indexes) Within(from, n int) Indexes {
	var within []int
	for _, i := range x.List() {
		if i >= from && i < from+n {
			within = append(within, i-from)
		}
	}
	return IndexesOf(within)
}
