package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/schedule"
)

func rule(t *testing.T, s makegood.Schedule) schedule.Rule {
	t.Helper()
	r, err := schedule.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at reads a time as the tests write it, with its offset.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02T15:04:05Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// next writes the fires after a time, in the zone of the schedule.
func next(t *testing.T, r schedule.Rule, zone, after string, count int) []string {
	t.Helper()
	local, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	var fires []string
	for when := at(t, after); len(fires) < count; {
		when = r.Next(when)
		if when.IsZero() {
			return append(fires, "never")
		}
		if when.Location() != time.UTC {
			t.Errorf("got %v, want it in UTC", when)
		}
		fires = append(fires, when.In(local).Format("2006-01-02T15:04:05Z07:00"))
	}
	return fires
}

func TestACronFiresWhenItSays(t *testing.T) {
	const from = "2026-11-22T13:00:00Z" // a Sunday
	for _, c := range []struct{ cron, want string }{
		{"* * * * *", "2026-11-22T13:01:00Z 2026-11-22T13:02:00Z"},
		{"*/20 * * * *", "2026-11-22T13:20:00Z 2026-11-22T13:40:00Z 2026-11-22T14:00:00Z"},
		{"0 9-17/4 * * *", "2026-11-22T17:00:00Z 2026-11-23T09:00:00Z 2026-11-23T13:00:00Z"},
		{"5,10 3 * * *", "2026-11-23T03:05:00Z 2026-11-23T03:10:00Z 2026-11-24T03:05:00Z"},
		{"0 0 * * MON-fri", "2026-11-23T00:00:00Z 2026-11-24T00:00:00Z"},
		{"0 12 * * 7", "2026-11-29T12:00:00Z 2026-12-06T12:00:00Z"},
		{"0 12 * * 0", "2026-11-29T12:00:00Z 2026-12-06T12:00:00Z"},
		{"0 0 1 jan,JUL *", "2027-01-01T00:00:00Z 2027-07-01T00:00:00Z"},
		{"0 0 31 * *", "2026-12-31T00:00:00Z 2027-01-31T00:00:00Z 2027-03-31T00:00:00Z"},
		{"0 0 29 2 *", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"0 0 13 * 5", "2026-11-27T00:00:00Z 2026-12-04T00:00:00Z 2026-12-11T00:00:00Z 2026-12-13T00:00:00Z"}, // either
		{"0 0 */2 * 1", "2026-11-23T00:00:00Z 2026-12-07T00:00:00Z"},                                          // both: an odd day that is a Monday
		{"0 0 29 2 */7", "2032-02-29T00:00:00Z 2060-02-29T00:00:00Z"},                                         // a Sunday
		{"@hourly", "2026-11-22T14:00:00Z"},
		{"@daily", "2026-11-23T00:00:00Z"},
		{"@midnight", "2026-11-23T00:00:00Z"},
		{"@weekly", "2026-11-29T00:00:00Z"},
		{"@monthly", "2026-12-01T00:00:00Z"},
		{"@Yearly", "2027-01-01T00:00:00Z"},
		{" 0  0 1 1 * ", "2027-01-01T00:00:00Z"},
	} {
		want := strings.Fields(c.want)
		got := next(t, rule(t, makegood.Schedule{Cron: c.cron}), "UTC", from, len(want))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.cron, strings.Join(got, " "), c.want)
		}
	}
}

// A rate counts instants, from the same beginning wherever and whenever it was made.
func TestARateFiresAtEqualDistances(t *testing.T) {
	for _, c := range []struct {
		every      time.Duration
		from, want string
	}{
		{15 * time.Minute, "2026-11-22T13:00:00Z", "2026-11-22T13:15:00Z 2026-11-22T13:30:00Z"},
		{15 * time.Minute, "2026-11-22T13:14:59Z", "2026-11-22T13:15:00Z"},
		{10 * time.Second, "2026-11-22T13:00:01Z", "2026-11-22T13:00:10Z 2026-11-22T13:00:20Z"},
		{24 * time.Hour, "2026-03-28T13:00:00Z", "2026-03-29T00:00:00Z 2026-03-30T00:00:00Z"},
		{7 * time.Minute, "1970-01-01T00:00:00Z", "1970-01-01T00:07:00Z"},
		{7 * time.Minute, "1969-12-31T23:59:00Z", "1970-01-01T00:00:00Z 1970-01-01T00:07:00Z"},
		{7 * time.Minute, "1969-12-31T23:53:00Z", "1970-01-01T00:00:00Z"},
	} {
		want := strings.Fields(c.want)
		got := next(t, rule(t, makegood.Schedule{Every: makegood.Duration(c.every)}), "UTC", c.from, len(want))
		if strings.Join(got, " ") != c.want {
			t.Errorf("every %s after %s:\n got %s\nwant %s", c.every, c.from, strings.Join(got, " "), c.want)
		}
	}
}

// Every case is a night in which clocks are put forward or back, or in which they are not. A fixed hour that is left out
// fires once, at the next moment that is not; one that comes twice fires once; where the hour is a wildcard, moments count.
func TestNightsInWhichTheClocksArePut(t *testing.T) {
	const (
		berlin   = "Europe/Berlin"       // 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00
		newYork  = "America/New_York"    // 2026-03-08 02:00 -> 03:00, 2026-11-01 02:00 -> 01:00
		lordHowe = "Australia/Lord_Howe" // 2026-10-04 02:00 -> 02:30, 2026-04-05 02:00 -> 01:30
		santiago = "America/Santiago"    // 2026-09-06 00:00 -> 01:00, 2026-04-05 00:00 -> 23:00
		kolkata  = "Asia/Kolkata"        // never
		apia     = "Pacific/Apia"        // 2011-12-30 does not exist
	)
	for _, c := range []struct{ name, zone, cron, after, want string }{
		{"left out", berlin, "30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"all minutes of an hour that is left out", berlin, "*/15 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"left out, and its next moment fires by itself", berlin, "0 2,3 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00 2026-03-30T03:00:00+02:00"},
		{"asked a moment before the gap", berlin, "30 2 * * *", "2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"the day's hours around what is left out", berlin, "0 1-4 * * *", "2026-03-29T00:30:00+01:00", "2026-03-29T01:00:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T04:00:00+02:00 2026-03-30T01:00:00+02:00"},
		{"twice", berlin, "30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"twice, asked between", berlin, "30 2 * * *", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"all minutes of an hour that comes twice", berlin, "*/30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:30:00+02:00 2026-10-26T02:00:00+01:00"},
		{"a wildcard, forward", berlin, "*/15 * * * *", "2026-03-29T01:30:00+01:00", "2026-03-29T01:45:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:15:00+02:00"},
		{"a wildcard, back", berlin, "*/15 * * * *", "2026-10-25T02:40:00+02:00", "2026-10-25T02:45:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T02:15:00+01:00"},
		{"a wildcard with a step, forward", berlin, "0 */2 * * *", "2026-03-29T00:30:00+01:00", "2026-03-29T04:00:00+02:00 2026-03-29T06:00:00+02:00"},
		{"a wildcard with a step, back", berlin, "0 */2 * * *", "2026-10-25T00:30:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T04:00:00+01:00"},

		{"left out", newYork, "15 2 * * *", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:15:00-04:00"},
		{"twice", newYork, "15 1 * * *", "2026-10-31T12:00:00-04:00", "2026-11-01T01:15:00-04:00 2026-11-02T01:15:00-05:00"},
		{"a wildcard, back", newYork, "15 * * * *", "2026-11-01T00:30:00-04:00", "2026-11-01T01:15:00-04:00 2026-11-01T01:15:00-05:00 2026-11-01T02:15:00-05:00"},
		{"only on the Sunday", newYork, "30 2 * 3 SUN", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-15T02:30:00-04:00"},

		{"half an hour is left out", lordHowe, "15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"the half that is not", lordHowe, "45 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:45:00+11:00"},
		{"half an hour comes twice", lordHowe, "45 1 * * *", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"a wildcard, forward by half an hour", lordHowe, "*/15 * * * *", "2026-10-04T01:40:00+10:30", "2026-10-04T01:45:00+10:30 2026-10-04T02:30:00+11:00 2026-10-04T02:45:00+11:00"},
		{"a wildcard, back by half an hour", lordHowe, "*/15 * * * *", "2026-04-05T01:40:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},

		{"midnight is left out", santiago, "0 0 * * *", "2026-09-05T12:00:00-04:00", "2026-09-06T01:00:00-03:00 2026-09-07T00:00:00-03:00"},
		{"midnight of a date is left out", santiago, "0 0 6 9 *", "2026-09-05T12:00:00-04:00", "2026-09-06T01:00:00-03:00 2027-09-06T00:00:00-03:00"},
		{"the hour before midnight comes twice", santiago, "30 23 * * *", "2026-04-04T12:00:00-03:00", "2026-04-04T23:30:00-03:00 2026-04-05T23:30:00-04:00"},
		{"a day that begins late", santiago, "* * 6 9 *", "2026-09-05T12:00:00-04:00", "2026-09-06T01:00:00-03:00 2026-09-06T01:01:00-03:00"},

		{"no clock is put", kolkata, "30 2 * * *", "2026-03-28T12:00:00+05:30", "2026-03-29T02:30:00+05:30 2026-03-30T02:30:00+05:30"},
		{"a day is left out", apia, "0 12 * * *", "2011-12-29T13:00:00-10:00", "2011-12-31T00:00:00+14:00 2011-12-31T12:00:00+14:00"},
	} {
		t.Run(c.zone+", "+c.name, func(t *testing.T) {
			want := strings.Fields(c.want)
			got := next(t, rule(t, makegood.Schedule{Cron: c.cron, Zone: c.zone}), c.zone, c.after, len(want))
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s after %s:\n got %s\nwant %s", c.cron, c.after, strings.Join(got, " "), c.want)
			}
		})
	}
}

// In whatever night: a schedule with a fixed hour fires once on each date, and one with a wildcard four times in every
// hour that passes.
func TestEveryDateOfManyYearsFiresOnceAndEveryHourFourTimes(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"} {
		begin, end := at(t, "2024-01-01T12:00:00Z"), at(t, "2028-01-01T12:00:00Z")
		for _, cron := range []string{"30 2 * * *", "0 0 * * *", "15 1 * * *", "45 23 * * *"} {
			days := len(rule(t, makegood.Schedule{Cron: cron, Zone: zone}).Latest(begin, end, 1<<20))
			if want := int(end.Sub(begin) / (24 * time.Hour)); days != want {
				t.Errorf("%s, %s: %d fires, want one on each of %d days", zone, cron, days, want)
			}
		}
		quarters := len(rule(t, makegood.Schedule{Cron: "*/15 * * * *", Zone: zone}).Latest(begin.Add(1), end, 1<<20))
		if want := int(end.Sub(begin) / (15 * time.Minute)); quarters != want {
			t.Errorf("%s, */15: %d fires, want four in each of %d hours", zone, quarters, want/4)
		}
	}
}

func TestOfManyFiresTheLatestAreFound(t *testing.T) {
	from, to := at(t, "2025-11-22T13:00:00Z"), at(t, "2026-11-22T13:00:00Z")
	minutes := rule(t, makegood.Schedule{Cron: "* * * * *"})
	got := minutes.Latest(from, to, 3)
	if len(got) != 3 || !got[0].Equal(to.Add(-2*time.Minute)) || !got[2].Equal(to) {
		t.Errorf("got %v, want the last three minutes, %v included", got, to)
	}
	yearly := rule(t, makegood.Schedule{Cron: "0 13 22 11 *"})
	if got = yearly.Latest(from, to, 5); len(got) != 2 || !got[0].Equal(from) || !got[1].Equal(to) {
		t.Errorf("got %v, want %v and %v", got, from, to)
	}
	if got = yearly.Latest(from.Add(1), to.Add(-1), 5); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
	if got = yearly.Latest(to, from, 5); len(got) != 0 {
		t.Errorf("got %v, want none of a stretch that ends before it begins", got)
	}
	half := rule(t, makegood.Schedule{Every: makegood.Duration(30 * time.Minute)})
	if got = half.Latest(from, to, 2); len(got) != 2 || !got[1].Equal(to) {
		t.Errorf("got %v, want two, the last at %v", got, to)
	}
}

func TestWhatIsNoScheduleIsRefused(t *testing.T) {
	for _, c := range []struct {
		s    makegood.Schedule
		says string
	}{
		{makegood.Schedule{}, "neither cron nor every"},
		{makegood.Schedule{Cron: "@daily", Every: makegood.Minute}, "both cron and every"},
		{makegood.Schedule{Cron: "@daily", Zone: "Mars/Olympus"}, `zone "Mars/Olympus" is not known`},
		{makegood.Schedule{Cron: "@daily", Zone: "Local"}, `zone "Local" is not known`},
		{makegood.Schedule{Cron: "@daily", Zone: "../etc"}, "is not known"},
		{makegood.Schedule{Every: makegood.Minute, Zone: "Asia/Kolkata"}, "zone is given beside every"},
		{makegood.Schedule{Every: makegood.Second}, "every is 1s: want 10s to 8760h0m0s"},
		{makegood.Schedule{Every: makegood.Duration(-time.Hour)}, "every is -1h0m0s"},
		{makegood.Schedule{Every: makegood.Duration(366 * 24 * time.Hour)}, "every is 8784h0m0s"},
		{makegood.Schedule{Every: makegood.Duration(time.Minute + time.Millisecond)}, "whole seconds"},
		{makegood.Schedule{Cron: "* * * *"}, "has 4 fields, want 5"},
		{makegood.Schedule{Cron: "0 * * * * *"}, "has 6 fields, want 5"},
		{makegood.Schedule{Cron: "@noon"}, "or one of @hourly"},
		{makegood.Schedule{Cron: "60 * * * *"}, `the minute: "60" is not one: want 0 to 59`},
		{makegood.Schedule{Cron: "* 24 * * *"}, `the hour: "24" is not one: want 0 to 23`},
		{makegood.Schedule{Cron: "* * 0 * *"}, `the day of the month: "0" is not one: want 1 to 31`},
		{makegood.Schedule{Cron: "* * * 13 *"}, `the month: "13" is not one: want 1 to 12, or JAN to DEC`},
		{makegood.Schedule{Cron: "* * * * MOM"}, `the day of the week: "MOM" is not one: want 0 to 7, or SUN to SAT`},
		{makegood.Schedule{Cron: "+5 * * * *"}, `"+5" is not one`},
		{makegood.Schedule{Cron: "-5 * * * *"}, `"" is not one`},
		{makegood.Schedule{Cron: "1,,2 * * * *"}, `"" is not one`},
		{makegood.Schedule{Cron: "5/15 * * * *"}, `want 5-59/15 or */15`},
		{makegood.Schedule{Cron: "*/0 * * * *"}, `"0" is not a step: want 1 to 59`},
		{makegood.Schedule{Cron: "*/60 * * * *"}, `"60" is not a step`},
		{makegood.Schedule{Cron: "* 22-2 * * *"}, `"22-2" goes backwards`},
		{makegood.Schedule{Cron: "0 0 30 2 *"}, "there is no such day"},
		{makegood.Schedule{Cron: strings.Repeat("0,", 128) + "0 * * * *"}, "has 265 bytes, the limit is 256"},
		{makegood.Schedule{Cron: "0 0 L * *"}, `"L" is not one`},
	} {
		_, err := schedule.New(c.s)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v, want %q", c.s, err, c.says)
		}
	}
}

// Whatever a cron says, its fires go forward, and no time of the year is looked for without end.
func FuzzAFireIsLaterThanWhatItIsAskedAfter(f *testing.F) {
	for _, cron := range []string{"*/15 * * * *", "30 2 * * *", "0 0 29 2 1", "@daily", "0 0 6 9 *"} {
		f.Add(cron, "America/Santiago", int64(1_788_000_000))
	}
	f.Fuzz(func(t *testing.T, cron, zone string, after int64) {
		r, err := schedule.New(makegood.Schedule{Cron: cron, Zone: zone})
		if err != nil {
			return
		}
		when := time.Unix(after%(1<<33), 0)
		for range 5 {
			next := r.Next(when)
			if !next.After(when) {
				t.Fatalf("%q in %q: after %v comes %v", cron, zone, when, next)
			}
			when = next
		}
	})
}
