package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// searchYears is how far ahead a fire is looked for: longer than 29 February takes to fall on any day of the week.
const searchYears = 44

// cron is the five fields, each a set of numbers.
type cron struct {
	minute, hour, day, month, weekday set
	// everyHour: the hour is a wildcard, so moments count and not times on the wall.
	everyHour bool
	// anyDay, anyWeekday: the field is a wildcard. Where neither is, a day fits that fits either.
	anyDay, anyWeekday bool
}

// set is a set of the numbers from 0 to 63.
type set uint64

func (s set) has(n int) bool { return s&(1<<n) != 0 }

// field is the set of values of one of the five fields.
type field struct {
	name     string
	min, max int
	// names stand for the numbers from min on.
	names []string
}

var (
	weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	months   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	fields   = []field{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of the month", 1, 31, nil},
		{"month", 1, 12, months},
		{"day of the week", 0, 7, weekdays},
	}
	words = map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}
)

// parseCron reads five fields, or a word for them.
func parseCron(text string) (*cron, error) {
	if len(text) > limits.MaxCronBytes {
		return nil, fmt.Errorf("has %d bytes, the limit is %d", len(text), limits.MaxCronBytes)
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "@") {
		meant, known := words[strings.ToLower(text)]
		if !known {
			return nil, errors.New("want five fields, or one of @hourly, @daily, @weekly, @monthly and @yearly")
		}
		text = meant
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return nil, fmt.Errorf("has %d fields, want 5: minute, hour, day of the month, month, day of the week", len(parts))
	}
	sets := make([]set, len(fields))
	for i, f := range fields {
		var err error
		if sets[i], err = f.parse(parts[i]); err != nil {
			return nil, fmt.Errorf("the %s: %w", f.name, err)
		}
	}
	c := &cron{
		minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4],
		everyHour: isWildcard(parts[1]), anyDay: isWildcard(parts[2]), anyWeekday: isWildcard(parts[4]),
	}
	if c.weekday.has(7) {
		c.weekday |= 1 // Sunday has two numbers.
	}
	return c, nil
}

// isWildcard reports whether a field counts from everything, with or without a step.
func isWildcard(text string) bool { return strings.HasPrefix(text, "*") }

// parse reads a list: parts between commas.
func (f field) parse(text string) (set, error) {
	var all set
	for part := range strings.SplitSeq(text, ",") {
		from, to, step, err := f.parseRange(part)
		if err != nil {
			return 0, err
		}
		for n := from; n <= to; n += step {
			all |= 1 << n
		}
	}
	return all, nil
}

// parseRange reads a number, a range or a wildcard, the last two with or without a step.
func (f field) parseRange(text string) (from, to, step int, err error) {
	span, steps, stepped := strings.Cut(text, "/")
	step = 1
	if stepped {
		if step, err = f.parseStep(steps); err != nil {
			return 0, 0, 0, err
		}
	}
	if span == "*" {
		return f.min, f.max, step, nil
	}
	first, last, isRange := strings.Cut(span, "-")
	if from, err = f.parseNumber(first); err != nil {
		return 0, 0, 0, err
	}
	switch {
	case isRange:
		to, err = f.parseNumber(last)
	case stepped:
		err = fmt.Errorf("%q has a step and no range: want %s-%d/%d or */%d", text, first, f.max, step, step)
	default:
		to = from
	}
	if err == nil && to < from {
		err = fmt.Errorf("%q goes backwards: write it as two ranges with a comma", text)
	}
	return from, to, step, err
}

func (f field) parseStep(text string) (int, error) {
	step, err := strconv.Atoi(text)
	if err != nil || step < 1 || step > f.max {
		return 0, fmt.Errorf("%q is not a step: want 1 to %d", text, f.max)
	}
	return step, nil
}

func (f field) parseNumber(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.min + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max || text[0] == '+' {
		return 0, fmt.Errorf("%q is not one: want %s", text, f.wanted())
	}
	return n, nil
}

// wanted says what a number of the field may be.
func (f field) wanted() string {
	if len(f.names) == 0 {
		return fmt.Sprintf("%d to %d", f.min, f.max)
	}
	return fmt.Sprintf("%d to %d, or %s to %s", f.min, f.max, f.names[0], f.names[len(f.names)-1])
}

// nextWall returns the first minute that fits, at or after a whole minute on a wall.
func (c *cron) nextWall(wall time.Time) (next time.Time, ever bool) {
	for end := wall.AddDate(searchYears, 0, 0); wall.Before(end); {
		year, month, day := wall.Date()
		switch {
		case !c.month.has(int(month)):
			wall = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.fitsDay(wall):
			wall = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case !c.hour.has(wall.Hour()):
			wall = wall.Truncate(time.Hour).Add(time.Hour)
		case !c.minute.has(wall.Minute()):
			wall = wall.Add(time.Minute)
		default:
			return wall, true
		}
	}
	return time.Time{}, false
}

// fitsDay reports whether a day fits: both of its fields, or, if neither is a wildcard, either one.
func (c *cron) fitsDay(wall time.Time) bool {
	day, weekday := c.day.has(wall.Day()), c.weekday.has(int(wall.Weekday()))
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
