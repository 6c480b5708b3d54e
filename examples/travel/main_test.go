package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the office that the demonstration starts.
func TestMain(m *testing.M) {
	if os.Getenv(asOffice) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// Sixty trips are booked on real servers, of which three are down for two seconds, each in its way, and the engine is killed
// meanwhile: none is undone, and the ledger is exact. The longer one is make travel-demo.
func TestAnOutageAndAKillUndoNoTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("the outage takes its time on the clock; make whole plays it, and the tests of trips have outages in virtual time")
	}
	var out bytes.Buffer
	d := demo{bookings: 60, outage: 2 * time.Second, out: &out}
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"kill -9", "60 trips, ", "all Processed, none undone", "240 lines"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%s\nwant %q in it", out.String(), want)
		}
	}
}

func TestWhatIsTypedWronglyIsToldWhatThereIs(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"hotel", `there is no word "hotel": want agency, office, or none`},
		{"-bookings 3", "3 bookings, and an outage of 30s: want 10 to 100000, and up to 20m0s"},
		{"-outage 30m", "300 bookings, and an outage of 30m0s: want 10 to 100000, and up to 20m0s"},
		{"-bookings 10 more", `"more" is no flag`},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &bytes.Buffer{}, &stderr); code != 1 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: got %d, %q, want 1 and %q", c.args, code, stderr.String(), c.want)
		}
	}
}
