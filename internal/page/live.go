package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/plain"
)

const (
	// maxStreams is how many streams are open at once, of all browsers together. One more gets 503, and tries again.
	maxStreams = 64
	// maxRows is how many rows a browser may have kept up to date that the view itself does not show any more.
	maxRows = 100
	// liveInterval is how far apart a view is looked at for its streams, where the API is in this process.
	liveInterval = 250 * time.Millisecond
	// restFactor bounds the cost of looks: a view rests this many times as long as its look took.
	restFactor = 4
	// looksAtOnce is how many views are read at once for all streams together: however many are open, jobs have the rest of
	// the machine, and one slow view does not block the others.
	looksAtOnce = 2
	// pulse is how often a stream without changes sends a sign of life; a browser gives up after three missed ones.
	pulse = 5 * time.Second
	// sendTimeout is how long a browser may take to receive an update.
	sendTimeout = 10 * time.Second
)

// update is a message of a stream: the regions that have changed since the last one, by id; the first has all.
type update struct {
	// At is when the view was read.
	At      time.Time         `json:"at"`
	Regions map[string]string `json:"regions,omitempty"`
	// Problem says why the view cannot be shown now; the regions sent before stay as they were.
	Problem string `json:"problem,omitempty"`
	// stills are the regions without their running times: two with equal stills need no update.
	stills map[string]string
}

// loaded is the result of a view's load for a stream.
type loaded struct {
	view  view
	found bool
	data  any
	err   error
}

type loadedKey struct{}

// loaders returns a mux that finds the view of a path, and loads it.
func (p *Page) loaders() *http.ServeMux {
	mux := http.NewServeMux()
	for _, v := range views() {
		if len(v.regions) == 0 || !strings.HasPrefix(v.pattern, http.MethodGet+" ") {
			continue
		}
		mux.HandleFunc(v.pattern, func(_ http.ResponseWriter, r *http.Request) {
			into, _ := r.Context().Value(loadedKey{}).(*loaded)
			into.view, into.found = v, true
			into.data, into.err = v.load(p, r)
		})
	}
	return mux
}

// unread is a response writer that discards the body.
type unread struct{ header http.Header }

func (u unread) Header() http.Header { return u.header }

func (unread) Write(p []byte) (int, error) { return len(p), nil }

func (unread) WriteHeader(int) {}

// load reads the view of a path.
func (p *Page) load(ctx context.Context, path *url.URL) (*http.Request, loaded) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var into loaded
	r := (&http.Request{Method: http.MethodGet, URL: path, Header: http.Header{}, Body: http.NoBody}).WithContext(context.WithValue(ctx, loadedKey{}, &into))
	p.views.ServeHTTP(unread{http.Header{}}, r)
	return r, into
}

// look reads the view of a path and writes its regions.
func (p *Page) look(ctx context.Context, path *url.URL) (update, error) {
	r, got := p.load(ctx, path)
	now := update{At: p.Now().UTC()}
	switch _, moved := got.data.(goTo); {
	case !got.found || moved:
		return now, errNoView
	case got.err != nil && ctx.Err() != nil:
		return now, ctx.Err()
	case got.err != nil:
		now.Problem = p.problemOf(r, got.err).Text
		return now, nil
	}
	now.Regions, now.stills = map[string]string{}, map[string]string{}
	f := p.frame(r, got.view, got.data)
	for _, region := range slices.Concat(got.view.regions, frameRegions) {
		var text bytes.Buffer
		if err := p.shells[got.view.pattern]().ExecuteTemplate(&text, region, f); err != nil {
			return now, fmt.Errorf("write region %s of %s: %w", region, path.Path, err)
		}
		now.Regions[region] = string(plain.Escaped(text.Bytes()))
		now.stills[region] = counting.ReplaceAllString(now.Regions[region], "$1")
	}
	return now, nil
}

// frameRegions are those around every view that is live.
var frameRegions = []string{"nav-errors"}

// errNoView: there is no view with regions at the path.
var errNoView = errors.New("there is no view at this path that has anything live")

// counting matches the times that page.js rewrites each second, which are no change.
var counting = regexp.MustCompile(`(<time [^>]*data-(?:since|until)[^>]*>)[^<]*`)

// stream sends the regions of a view as they change, until the browser goes or the page is closed; or once, to a
// browser that has as many streams as it can.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	path, err := url.ParseRequestURI(r.URL.Query().Get("view"))
	if err != nil || path.Host != "" || len(path.Query()["row"]) > maxRows {
		p.refuse(w, r, &problem{status: http.StatusBadRequest, Head: "That is not live", Text: fmt.Sprintf("view: want the path of a view, with %d rows at most", maxRows)})
		return
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		p.refuse(w, r, &problem{status: http.StatusServiceUnavailable, Head: "Too many streams", Text: fmt.Sprintf("%d pages are live already; this one stays as it was loaded", maxStreams)})
		return
	}
	feed, err := p.feeds.join(r.Context(), path)
	if errors.Is(err, errNoView) {
		p.refuse(w, r, &problem{status: http.StatusNotFound, Head: "That is not live", Text: err.Error()})
		return
	}
	if r.Context().Err() != nil && err != nil {
		return
	}
	if err != nil {
		p.refuse(w, r, p.problemOf(r, err))
		return
	}
	defer p.feeds.leave(feed)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	// Proxies must not buffer the stream.
	h.Set("X-Accel-Buffering", "no")
	out := &sender{w: w, control: http.NewResponseController(w), sent: map[string]string{}}
	// The server's own limits are for short answers.
	_ = out.control.SetReadDeadline(time.Time{})
	if r.URL.Query().Has("once") {
		latest, _ := feed.latest()
		_ = out.send(latest) // A browser that has gone asks again.
		return
	}
	p.follow(r.Context(), feed, out)
}

// follow sends the updates of a feed, until the browser goes.
func (p *Page) follow(ctx context.Context, f *feed, out *sender) {
	alive := time.NewTicker(pulse)
	defer alive.Stop()
	for {
		latest, changed := f.latest()
		if out.send(latest) != nil {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
		case <-ctx.Done():
			return
		case <-p.ended:
			return
		}
	}
}

// sender writes updates to a browser.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// sent are the regions as last sent, without their running times.
	sent map[string]string
}

// send writes the parts of an update that the browser lacks. The error means that it has gone.
func (s *sender) send(u update) error {
	news := update{At: u.At, Problem: u.Problem, Regions: map[string]string{}}
	for id, text := range u.Regions {
		if now := u.stills[id]; s.sent[id] != now {
			s.sent[id], news.Regions[id] = now, text
		}
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	// HTML unescaped: each < would be six bytes.
	e.SetEscapeHTML(false)
	if err := e.Encode(news); err != nil {
		panic(fmt.Sprintf("page: an update cannot be written: %v", err))
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := fmt.Fprintf(s.w, "data: %s\n", body.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}
