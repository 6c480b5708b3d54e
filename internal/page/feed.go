package page

import (
	"context"
	"maps"
	"net/url"
	"sync"
	"time"
)

// feeds are the views that browsers have open. All streams of the same view share one look at the API.
type feeds struct {
	page *Page
	mu   sync.Mutex
	// open are the feeds by the path of their view.
	open map[string]*feed
}

// feed is a view that is looked at again and again.
type feed struct {
	path    string
	readers int
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	now     update
	changed chan struct{}
}

// join returns the feed of a view, after one look at it. The caller must leave. errNoView: there is no such view; the
// error of ctx: the caller has gone.
func (fs *feeds) join(ctx context.Context, path *url.URL) (*feed, error) {
	key := path.RequestURI()
	fs.mu.Lock()
	f := fs.open[key]
	if f != nil {
		f.readers++
		fs.mu.Unlock()
		return f, nil
	}
	fs.mu.Unlock()
	first, err := fs.page.look(ctx, path)
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.open[key]; f != nil {
		f.readers++
		return f, nil
	}
	running, stop := context.WithCancel(context.Background())
	f = &feed{path: key, readers: 1, stop: stop, stopped: make(chan struct{}), now: first, changed: make(chan struct{})}
	fs.open[key] = f
	go func() {
		defer close(f.stopped)
		f.run(running, fs.page, path)
	}()
	return f, nil
}

// leave gives a feed up; the last one stops it, and waits until it has stopped.
func (fs *feeds) leave(f *feed) {
	fs.mu.Lock()
	f.readers--
	last := f.readers == 0
	if last {
		delete(fs.open, f.path)
	}
	fs.mu.Unlock()
	if last {
		f.stop()
		<-f.stopped
	}
}

// run looks at the view until ctx ends.
func (f *feed) run(ctx context.Context, p *Page, path *url.URL) {
	took := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(p.Interval, restFactor*took)):
		}
		if !p.takeTurn(ctx) {
			return
		}
		begun := time.Now()
		next, err := p.look(ctx, path)
		took = time.Since(begun)
		<-p.looks
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			next.Problem = err.Error()
		}
		f.publish(next)
	}
}

// takeTurn waits until it is the caller's turn to look; false: ctx has ended.
func (p *Page) takeTurn(ctx context.Context) bool {
	select {
	case p.looks <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// publish tells the followers, if the view has changed.
func (f *feed) publish(next update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next.Problem != "" {
		// On an error the last regions stay.
		next.Regions, next.stills = f.now.Regions, f.now.stills
	}
	same := next.Problem == f.now.Problem && maps.Equal(next.stills, f.now.stills)
	f.now = next
	if !same {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// latest returns the view at the last look, and a channel that is closed when it has changed.
func (f *feed) latest() (update, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.changed
}
