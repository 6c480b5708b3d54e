// Package pagesoak holds the page to what it must still be after a long time: an engine has many jobs under way,
// windows follow them, and whatever is held in memory is the same after ten minutes as after two. It takes the times of
// what a person waits for, too, and judges none of them: they are of the machine.
package pagesoak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

const (
	// GrowthFactor is how many times as much may be held at the end as after the first period, beside the room that what is
	// held has anyway: heapRoom bytes, nodeRoom nodes of a document, and as many goroutines as an engine that is behind has
	// at work on what it took, goroutineRoom. A goroutine that a look, a stream or a job left behind would be thousands in
	// ten minutes.
	GrowthFactor  = 1.5
	heapRoom      = 16 << 20
	goroutineRoom = 600
	nodeRoom      = 2000
	// compared is how many periods are taken together at each end, where there are enough of them.
	compared = 3
	// requestEvery is how far apart the pages are asked for, of which the times are taken.
	requestEvery = 250 * time.Millisecond
	// switchEvery is how far apart the watched job is paused and resumed, and lagPatience how long a window may take to
	// show it.
	switchEvery = 3 * time.Second
	lagPatience = 2 * time.Minute
)

// Config says how much, and for how long.
type Config struct {
	// Dir keeps the jobs.
	Dir string
	// Jobs are under way at any time, Windows follow them, each by a stream of its own.
	Jobs, Windows int
	// Periods of this length follow each other; figures are taken at the end of each.
	Period  time.Duration
	Periods int
	// Screen is a real browser, beside the windows; nil: none.
	Screen Screen
	// Say takes each line of the report as it comes.
	Say func(string)
}

// Screen is a browser that has pages open.
type Screen interface {
	// Open shows the page that is served at url.
	Open(url string) error
	// Shows waits until the row of a job reads as in a state, and returns when it did.
	Shows(ctx context.Context, job, state string) (time.Time, error)
	// Holds returns how much the pages hold: bytes of the heap of their scripts after a collection, and nodes of their
	// documents.
	Holds(ctx context.Context) (heap, nodes int, err error)
}

// Figures are what a period has shown.
type Figures struct {
	// Heap is what is in use after a collection, in bytes, of the engine and of what drives it; Goroutines are theirs, too.
	Heap, Goroutines int
	// Streams are open; Bytes have come by the stream of the list of jobs, All by all streams.
	Streams, Bytes, All int
	// Ended are the jobs that have come to an end.
	Ended int
	// List and Job are the times of GET / and GET /jobs/ID, Lag and ScreenLag those from when a job was seen to have
	// changed until a window, and the browser, showed it.
	List, Job, Lag, ScreenLag Times
	// ScreenHeap and ScreenNodes are what the browser holds.
	ScreenHeap, ScreenNodes int
}

// Run does it, and returns the figures of each period. The error says what failed, or what has grown.
func Run(ctx context.Context, c Config) (all []Figures, err error) {
	load := newLoad(c.Jobs)
	eng, err := engine.Open(ctx, engine.Options{Dir: c.Dir, Workflows: workflows, Agents: load.agents(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, eng.Close())
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: eng.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // It ends with Close.
	defer server.Close()
	if err := load.begin(ctx, eng); err != nil {
		return nil, err
	}
	s := &soak{Config: c, load: load, jobs: eng, url: "http://" + listener.Addr().String(), meter: newMeter()}
	return s.run(ctx)
}

// soak is one that is under way.
type soak struct {
	Config
	load  *load
	jobs  *engine.Engine
	url   string
	meter *meter
	watch []*window
}

func (s *soak) run(ctx context.Context) (all []Figures, err error) {
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 4)
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop()
	for i := range s.Windows {
		w, err := open(ctx, s.url, watchedViews[i%len(watchedViews)])
		if err != nil {
			return nil, err
		}
		s.watch = append(s.watch, w)
		busy.Go(func() { w.follow(failed) })
	}
	if s.Screen != nil {
		if err := s.Screen.Open(s.url + "/"); err != nil {
			return nil, err
		}
	}
	for _, work := range []func(context.Context) error{s.load.refill, s.ask, s.flip} {
		busy.Go(func() {
			if err := work(ctx); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	s.Say(header)
	for n := range s.Periods {
		select {
		case err := <-failed:
			return all, err
		case <-time.After(s.Period):
		case <-ctx.Done():
			return all, ctx.Err()
		}
		f, err := s.period(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, f)
		s.Say(f.line(n + 1))
	}
	return all, Grown(all)
}

// period takes the figures of the one that ends.
func (s *soak) period(ctx context.Context) (Figures, error) {
	f := s.meter.take()
	f.Ended = s.load.taken()
	for i, w := range s.watch {
		n := w.taken()
		f.All += n
		if i == 0 {
			f.Bytes = n
		}
		if w.lives() {
			f.Streams++
		}
	}
	f.Heap, f.Goroutines = heapInUse(), runtime.NumGoroutine()
	if s.Screen == nil {
		return f, nil
	}
	var err error
	f.ScreenHeap, f.ScreenNodes, err = s.Screen.Holds(ctx)
	return f, err
}

// heapInUse is what is reachable after a collection, in bytes. What pools keep is gone after the second.
func heapInUse() int {
	runtime.GC()
	runtime.GC()
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(live)
	return int(live[0].Value.Uint64())
}

// ask asks for pages, one after the other, and takes their times.
func (s *soak) ask(ctx context.Context) error {
	tick := time.NewTicker(requestEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		path, into := "/", &s.meter.list
		if n%2 == 1 {
			path, into = "/jobs/"+s.load.some(n), &s.meter.job
		}
		begun := time.Now()
		if err := get(ctx, s.url+path); err != nil {
			return err
		}
		into.add(time.Since(begun))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// flip pauses and resumes a job, and takes the time until each window that has it shows that.
func (s *soak) flip(ctx context.Context) error {
	tick := time.NewTicker(switchEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		verb, state := watchedVerbs[n%2], watchedStates[n%2]
		if _, err := s.jobs.Request(ctx, watched, api.Request{Verb: verb, Reason: "the page is looked at"}); err != nil {
			return fmt.Errorf("%s job %s: %w", verb, watched, err)
		}
		if err := s.shown(ctx, state, time.Now()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// shown waits until all show the watched job in a state.
func (s *soak) shown(ctx context.Context, state string, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	for _, w := range s.watch {
		if !w.hasWatched() {
			continue
		}
		at, err := w.shows(ctx, state)
		if err != nil {
			return err
		}
		s.meter.lag.add(at.Sub(since))
	}
	if s.Screen == nil {
		return nil
	}
	at, err := s.Screen.Shows(ctx, watched, state)
	if err == nil {
		s.meter.screen.add(at.Sub(since))
	}
	return err
}

// Grown names the figures that are much larger at the end than at the beginning. The first period does not count:
// caches fill then.
func Grown(all []Figures) error {
	if len(all) < 3 {
		return fmt.Errorf("%d periods: want three at least, of which the first is the warming up", len(all))
	}
	steady := all[1:]
	n := min(compared, len(steady)/2)
	first, last := steady[:n], steady[len(steady)-n:]
	var grown []error
	for _, held := range []struct {
		what string
		of   func(Figures) int
		room int
	}{
		{"bytes of heap", func(f Figures) int { return f.Heap }, heapRoom},
		{"goroutines", func(f Figures) int { return f.Goroutines }, goroutineRoom},
		{"bytes of heap in the browser", func(f Figures) int { return f.ScreenHeap }, heapRoom},
		{"nodes in the browser", func(f Figures) int { return f.ScreenNodes }, nodeRoom},
	} {
		before, after := least(first, held.of), least(last, held.of)
		if limit := int(GrowthFactor*float64(before)) + held.room; after > limit {
			grown = append(grown, fmt.Errorf("%s: %d at the end and %d at the beginning, the limit is %d", held.what, after, before, limit))
		}
	}
	return errors.Join(grown...)
}

// least is the lowest of a figure: what is on its way for a moment is not what is kept.
func least(all []Figures, of func(Figures) int) int {
	low := slices.MinFunc(all, func(a, b Figures) int { return of(a) - of(b) })
	return of(low)
}
