package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// heard is what a stream sent.
type heard struct {
	At      time.Time         `json:"at"`
	Regions map[string]string `json:"regions"`
	Problem string            `json:"problem"`
}

// follow opens the stream of a view. The channel is closed when the stream ends; stop ends it from here.
func (w *world) follow(view string) (updates <-chan heard, stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"live?view="+url.QueryEscape(view), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		w.t.Fatalf("live %s: got %d, %s", view, answer.StatusCode, kind)
	}
	all := make(chan heard, 1000)
	go func() {
		defer close(all)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var u heard
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is && json.Unmarshal([]byte(data), &u) == nil {
				all <- u
			}
		}
	}()
	return all, cancel
}

// until reads updates until one has text in a region, and returns that one.
func until(t *testing.T, updates <-chan heard, region, text string) heard {
	t.Helper()
	for u := range updates {
		if strings.Contains(u.Regions[region], text) {
			return u
		}
	}
	t.Fatalf("the stream ended, and %s never had %q", region, text)
	return heard{}
}

func TestAStreamSendsAllRegionsOnceAndThenWhatHasChanged(t *testing.T) {
	w := newWorld(t)
	updates, _ := w.follow("/")
	first := <-updates
	for _, region := range []string{"lead", "states", "jobs"} {
		if first.Regions[region] == "" {
			t.Errorf("the first update has no region %s", region)
		}
	}
	w.submit("t-1", `{"hold":true}`, false)
	last := first.Regions
	for u := range updates {
		for id, text := range u.Regions {
			if text == last[id] {
				t.Errorf("got region %s again, which has not changed: %q", id, text)
			}
			last[id] = text
		}
		if strings.Contains(u.Regions["jobs"], `id="job-t-1"`) {
			break
		}
	}
	close(w.hold)
	until(t, updates, "jobs", "Processed")
}

// The jobs on somebody's screen change where they are, also when the list shows others by then.
func TestARowThatTheListShowsNoMoreIsStillKeptUpToDate(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	w.submit("t-2", `{"fail":"charge"}`, true)
	updates, _ := w.follow("/?state=Error&row=t-1&row=nobody")
	u := until(t, updates, "jobs", `id="job-t-1" data-kept`)
	if strings.Contains(u.Regions["jobs"], "nobody") {
		t.Error("got a row of a job that there is not")
	}
}

func TestAStreamSaysWhyAViewCannotBeShown(t *testing.T) {
	w := newWorld(t)
	updates, _ := w.follow("/?state=Unheard")
	if u := <-updates; !strings.Contains(u.Problem, "there is no state") {
		t.Errorf("got %q, want why", u.Problem)
	}
}

// A browser that has as many streams as it can asks now and then.
func TestAViewThatIsAskedForOnceIsSentWholeAndEnds(t *testing.T) {
	w := newWorld(t)
	w.submit("t-1", `{}`, true)
	for range 2 {
		got := w.get("live?once=true&view=%2F")
		var u heard
		if err := json.Unmarshal([]byte(strings.TrimPrefix(got.text, "data: ")), &u); err != nil || !strings.Contains(u.Regions["jobs"], `id="job-t-1"`) {
			t.Errorf("got %v of %.200q, want all regions", err, got.text)
		}
	}
}

func TestWhatIsNoViewIsNotLive(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]int{
		"live":                                http.StatusBadRequest,
		"live?view=http%3A%2F%2Fevil.example": http.StatusBadRequest,
		"live?view=%2Fnothing":                http.StatusNotFound,
		"live?view=%2Flive":                   http.StatusNotFound,
		"live?view=%2F%3Fx" + strings.Repeat("%26row%3Da", 101): http.StatusBadRequest,
	} {
		if got := w.get(path).status; got != want {
			t.Errorf("%.60s: got %d, want %d", path, got, want)
		}
	}
}

func TestStreamsEndWithTheEngine(t *testing.T) {
	w := newWorld(t)
	updates, _ := w.follow("/")
	<-updates
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range updates {
	}
}

func TestStreamsHaveALimit(t *testing.T) {
	w := newWorld(t)
	var last func()
	for range 64 {
		updates, stop := w.follow("/")
		<-updates
		last = stop
	}
	refused := w.get("live?view=%2F")
	if refused.status != http.StatusServiceUnavailable {
		t.Errorf("got %d for one more, want 503", refused.status)
	}
	refused.wants(t, "64 pages are live already")
	last()
	deadline := time.Now().Add(patience)
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"live?view=%2F", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("one has gone, and its place was not given to another")
		}
	}
}
