package job_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// A limit is read as people write it, and one that cannot be kept is refused; a token cools so long that the rate holds.
func TestALimitIsReadAsItIsWritten(t *testing.T) {
	for _, c := range []struct {
		from  makegood.Limit
		want  job.Limit
		cools time.Duration
		wrong string
	}{
		{from: makegood.Limit{}},
		{from: makegood.Limit{Concurrency: 3}, want: job.Limit{Most: 3}},
		{from: makegood.Limit{Rate: "100/s"}, want: job.Limit{Rate: 100, Per: time.Second, Burst: 100}, cools: time.Second},
		{from: makegood.Limit{Rate: "1000/s"}, want: job.Limit{Rate: 1000, Per: time.Second, Burst: 100}, cools: 100 * time.Millisecond},
		{from: makegood.Limit{Rate: "300/m", Concurrency: 2}, want: job.Limit{Most: 2, Rate: 300, Per: time.Minute, Burst: 5}, cools: time.Second},
		{from: makegood.Limit{Rate: "7/m"}, want: job.Limit{Rate: 7, Per: time.Minute, Burst: 1}, cools: 8572 * time.Millisecond},
		{from: makegood.Limit{Rate: "30/s", Burst: 1}, want: job.Limit{Rate: 30, Per: time.Second, Burst: 1}, cools: 34 * time.Millisecond},
		{from: makegood.Limit{Rate: "1/h"}, wrong: `a rate of "1/h": want 1/s to 1000/s, or 1/m to 1000/m`},
		{from: makegood.Limit{Rate: "0/s"}, wrong: `a rate of "0/s": want 1/s to 1000/s, or 1/m to 1000/m`},
		{from: makegood.Limit{Rate: "5"}, wrong: `a rate of "5": want 1/s to 1000/s, or 1/m to 1000/m`},
		{from: makegood.Limit{Rate: "5/s", Burst: 101}, wrong: "a burst of 101: want 1 to 100 attempts at one moment"},
		{from: makegood.Limit{Concurrency: 2, Burst: 1}, wrong: "a burst of 1: want a rate with it"},
		{from: makegood.Limit{Concurrency: -1}, wrong: "a limit of -1: want 1 to 100 attempts at once"},
	} {
		got, err := job.LimitOf(c.from)
		if c.wrong != "" {
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%+v: got %v, want %s", c.from, err, c.wrong)
			}
			continue
		}
		if err != nil || got != c.want || got.RateText() != c.from.Rate {
			t.Errorf("%+v: got %+v, %q and %v, want %+v", c.from, got, got.RateText(), err, c.want)
		}
		if got.Rate > 0 && got.Cools() != c.cools {
			t.Errorf("%+v: a token cools for %v, want %v", c.from, got.Cools(), c.cools)
		}
	}
}
