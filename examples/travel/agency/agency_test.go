package agency

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// answerWithin is how long an answer that must come is waited for, and hangsFor how long one that must not.
const answerWithin, hangsFor = 2 * time.Minute, 100 * time.Millisecond

// asks makes a request, and returns the status; 0 where there was no answer within that time.
func asks(t *testing.T, within time.Duration, url, key, forwardKey, what string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"trip":"t","what":"`+what+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Makegood-Forward-Key", forwardKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func open(t *testing.T) (a *Agency, url string) {
	t.Helper()
	a = New()
	url, err := a.Serve(t.Context(), "hotels", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, url
}

// A service does a thing once for a key, and refuses a key whose undo has come.
func TestAServiceHonoursKeys(t *testing.T) {
	a, url := open(t)
	for _, c := range []struct {
		path, key, forwardKey, what string
		want                        int
	}{
		{"/book", "k", "", "Ritz", 200},
		{"/book", "k", "", "Ritz", 200},
		{"/book", "m", "", SoldOut, 409},
		{"/book", "", "", "Ritz", 400},
		{"/cancel", "k/undo", "k", "Ritz", 200},
		{"/cancel", "n/undo", "n", "Ritz", 200},
		{"/cancel", "n/undo", "", "Ritz", 400},
		{"/book", "n", "", "Ritz", 410},
	} {
		if got := asks(t, answerWithin, url+c.path, c.key, c.forwardKey, c.what); got != c.want {
			t.Errorf("%s under %q: got %d, want %d", c.path, c.key, got, c.want)
		}
	}
	if got := a.Ledger(); len(got) != 1 || !got[0].Canceled {
		t.Errorf("the ledger: got %+v, want one line, canceled", got)
	}
	if got, want := a.Totals("hotels"), (Totals{Again: 1, Late: 1}); got != want {
		t.Errorf("totals: got %+v, want %+v", got, want)
	}
}

// An outage is seen by callers as what it is called, on a real address, and ends.
func TestOutagesBeginAndEnd(t *testing.T) {
	a, url := open(t)
	for o, want := range map[Outage]int{Errors: 503, Refuses: 0, Hangs: 0, Loses: 0, Up: 200} {
		if err := a.Break("hotels", o); err != nil {
			t.Fatal(err)
		}
		within := answerWithin
		if o == Hangs {
			within = hangsFor
		}
		if got := asks(t, within, url+"/book", "k-"+string(o), "", "Ritz"); got != want {
			t.Errorf("%q: got %d, want %d", o, got, want)
		}
	}
	stand := []string{}
	for _, line := range a.Ledger() {
		stand = append(stand, line.Key)
	}
	if slices.Sort(stand); !slices.Equal(stand, []string{"k-", "k-loses"}) {
		t.Errorf("booked: got %v, want those of no outage and of the answer that was lost", stand)
	}
}

// What is no service and no outage is refused with those that there are.
func TestTheSwitchboardRefusesWhatIsNotThere(t *testing.T) {
	a, _ := open(t)
	board := a.Switchboard()
	for target, want := range map[string]string{
		"/outages/trains?how=hangs": `there is no service "trains": want one of flights, hotels, cars, payments`,
		"/outages/hotels?how=on":    `there is no outage "on": want one of errors, refuses, hangs, loses, or none`,
		"/outages/hotels?how=hangs": "hotels: hangs",
		"/outages/hotels":           "hotels: up",
	} {
		if got := put(t, board, target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

func put(t *testing.T, h http.Handler, target string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	out := httptest.NewRecorder()
	h.ServeHTTP(out, r)
	return strings.TrimSpace(out.Body.String())
}

// What a ledger must not have is found.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	whole := func(trip string) (lines []Line) {
		for _, service := range Services {
			lines = append(lines, Line{Service: service, Trip: trip, Ref: service})
		}
		return lines
	}
	for name, c := range map[string]struct {
		lines []Line
		state makegood.ProcessState
		wrong int
	}{
		"booked whole":        {whole("t"), makegood.JobProcessed, 0},
		"nothing is booked":   {nil, makegood.JobUndone, 0},
		"booked, and undone":  {whole("t"), makegood.JobUndone, 4},
		"booked twice":        {append(whole("t"), Line{Service: "cars", Trip: "t"}), makegood.JobProcessed, 1},
		"of a trip unknown":   {whole("u"), makegood.JobUndone, 4},
		"booked half":         {whole("t")[:2], makegood.JobProcessed, 2},
		"canceled as it must": {[]Line{{Service: "cars", Trip: "t", Canceled: true}}, makegood.JobUndone, 0},
	} {
		if got := Check(c.lines, map[string]makegood.ProcessState{"t": c.state}); len(got) != c.wrong {
			t.Errorf("%s: got %q, want %d of them", name, got, c.wrong)
		}
	}
}
