package pagesoak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxUpdate is how large an update may be, in bytes.
const maxUpdate = 8 << 20

// watchedViews are what the windows show, in turn. Two that show the same share the looks of the page.
var watchedViews = []string{
	"/?row=" + watched, "/jobs/" + watched, "/?state=Processing&row=" + watched, "/errors", "/agents", "/workflows/long", "/schedules",
	"/?row=" + watched, "/jobs/reporting-0", "/?workflow=long",
}

// window is a page that somebody has open, as far as the server knows: its stream.
type window struct {
	ctx   context.Context
	view  string
	body  io.ReadCloser
	bytes atomic.Int64
	ended atomic.Bool

	mu    sync.Mutex
	state string
	since time.Time
	// changed is closed when state has.
	changed chan struct{}
}

// open opens the stream of a view.
func open(ctx context.Context, base, view string) (*window, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/live?view="+url.QueryEscape(view), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the stream of %s: %s", view, answer.Status)
	}
	return &window{ctx: ctx, view: view, body: answer.Body, changed: make(chan struct{})}, nil
}

// follow reads the stream until ctx ends. One that ends before that has failed.
func (w *window) follow(failed chan<- error) {
	defer w.body.Close()
	lines := bufio.NewScanner(w.body)
	lines.Buffer(nil, maxUpdate)
	for lines.Scan() {
		w.bytes.Add(int64(len(lines.Bytes()) + 1))
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var u struct {
			Regions map[string]string
			Problem string
		}
		if err := json.Unmarshal([]byte(data), &u); err != nil || u.Problem != "" {
			failed <- fmt.Errorf("the stream of %s: %s%v", w.view, u.Problem, err)
			return
		}
		w.read(u.Regions)
	}
	w.ended.Store(true)
	if w.ctx.Err() == nil {
		failed <- fmt.Errorf("the stream of %s ended: %w", w.view, lines.Err())
	}
}

// read notes as what the watched job reads.
func (w *window) read(regions map[string]string) {
	region := regions["job-head"]
	if list := regions["jobs"]; list != "" {
		_, row, _ := strings.Cut(list, `id="job-`+watched+`"`)
		region, _, _ = strings.Cut(row, "</tr>")
	}
	for _, state := range watchedStates {
		if strings.Contains(region, ">"+state+"</span>") {
			w.becomes(state)
			return
		}
	}
}

func (w *window) becomes(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == state {
		return
	}
	w.state, w.since = state, time.Now()
	close(w.changed)
	w.changed = make(chan struct{})
}

// shows waits until the watched job reads as in a state, and returns when it did.
func (w *window) shows(ctx context.Context, state string) (time.Time, error) {
	for {
		w.mu.Lock()
		now, since, changed := w.state, w.since, w.changed
		w.mu.Unlock()
		if now == state {
			return since, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return since, fmt.Errorf("%s shows %s as %q, and not as %s: %w", w.view, watched, now, state, ctx.Err())
		}
	}
}

// hasWatched reports whether the watched job is in the view.
func (w *window) hasWatched() bool { return strings.Contains(w.view, watched) }

// taken is how many bytes have come since it was asked last.
func (w *window) taken() int { return int(w.bytes.Swap(0)) }

func (w *window) lives() bool { return !w.ended.Load() }

// get asks for a page, and reads it.
func get(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
