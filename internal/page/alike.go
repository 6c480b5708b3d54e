package page

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// fewAlike is up to how many jobs are counted anew for each view, which takes some milliseconds. Above it, a view shows
	// the last count, and its time.
	fewAlike = 1000
	// maxAlike is how many counts are kept. Further ones are counted anew for each view.
	maxAlike = 64
)

// alikes caches counts of jobs that are too many to be counted for each view.
type alikes struct {
	mu sync.Mutex
	// by has the counts by the key of the query.
	by map[string]*alike
}

// alike is one count.
type alike struct {
	groups api.Groups
	at     time.Time
	// next is when it may be counted again; counting: a count is running.
	next     time.Time
	counting bool
}

// alike counts the jobs of a list by facets, to the end. For many jobs it returns the last count and its time; the zero
// time: just now. Callers must not change the groups.
func (p *Page) alike(ctx context.Context, filter api.Filter, by ...api.Facet) (api.Groups, time.Time, error) {
	key := alikeKey(filter, by)
	if last, known := p.alikes.last(key); known {
		p.alikes.again(ctx, p, key, func(ctx context.Context) (api.Groups, error) { return api.CountAll(ctx, p.Jobs, filter, by...) })
		return last.groups, last.at, nil
	}
	begun := time.Now()
	groups, err := api.CountAll(ctx, p.Jobs, filter, by...)
	if err == nil && groups.Jobs > fewAlike && !p.Scans {
		p.alikes.keep(key, groups, p.Now().UTC(), time.Since(begun))
	}
	return groups, time.Time{}, err
}

// alikeKey is the text of a count's filter and facets.
func alikeKey(filter api.Filter, by []api.Facet) string {
	var key strings.Builder
	key.WriteString(protocol.FilterValues(filter).Encode())
	for _, facet := range by {
		key.WriteString("," + url.QueryEscape(string(facet)))
	}
	return key.String()
}

// last returns the last count; false: count now.
func (a *alikes) last(key string) (alike, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.by[key]
	if of == nil {
		return alike{}, false
	}
	return *of, true
}

// again counts in the background, if a count is due and none is running. If it fails, the last count stays.
func (a *alikes) again(ctx context.Context, p *Page, key string, count func(context.Context) (api.Groups, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.by[key]
	if of == nil || of.counting || time.Now().Before(of.next) {
		return
	}
	of.counting = true
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		begun := time.Now()
		groups, err := count(ctx)
		if err != nil {
			p.Logger.WarnContext(ctx, "page: jobs could not be counted", "error", err)
			a.rest(key, time.Since(begun))
			return
		}
		a.keep(key, groups, p.Now().UTC(), time.Since(begun))
	}()
}

// keep notes a count, its time, and how long it took. A count that has become small is made for each view from now on.
func (a *alikes) keep(key string, groups api.Groups, at time.Time, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if groups.Jobs <= fewAlike || a.by[key] == nil && len(a.by) == maxAlike {
		delete(a.by, key)
		return
	}
	a.by[key] = &alike{groups: groups, at: at, next: time.Now().Add(recountRest * took)}
}

// rest lets it be for a while.
func (a *alikes) rest(key string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.by[key]; of != nil {
		of.counting, of.next = false, time.Now().Add(recountRest*took)
	}
}
