//go:build browser

package browser_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/makegood-dev/makegood/lab/pagesoak"
)

// minutes and soaked are how long the page is soaked, and in how many jobs; make page-soak says ten, and 10,000.
var (
	minutes = flag.Int("minutes", 0, "how long TestThePageLasts takes; 0: some seconds")
	soaked  = flag.Int("soaked", 300, "how many jobs are under way meanwhile")
)

// soakedViews are what the browser has open, each in a window of its own; the last shows the job of which the lag is taken.
var soakedViews = []string{"/", "/?state=Processing", "/jobs/watched"}

// screen is the browser of a soak.
type screen struct {
	t       *testing.T
	windows []*window
}

// Open shows the page, and waits until it is live.
func (s *screen) Open(url string) error {
	for _, view := range soakedViews {
		w := newWindow(s.t, url[:len(url)-1])
		w.excuse("ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_REFUSED") // The engine ends before the windows do.
		w.open(view)
		w.holds(`document.getElementById("live").dataset.state === "live"`)
		s.windows = append(s.windows, w)
	}
	return nil
}

// Shows waits until the watched job reads as in a state. The page itself says when: it is the same clock.
func (s *screen) Shows(ctx context.Context, job, state string) (time.Time, error) {
	last := s.windows[len(s.windows)-1]
	ctx, cancel := joined(last.ctx, ctx)
	defer cancel()
	at, err := chromedp.Run(ctx, chromedp.Evaluate[float64](fmt.Sprintf(`new Promise(seen => {
		const head = document.getElementById("job-head")
		const look = () => { if (head.innerText.includes(%q)) { watch.disconnect(); seen(performance.timeOrigin + performance.now()) } }
		const watch = new MutationObserver(look)
		watch.observe(head, {subtree: true, childList: true, characterData: true})
		look()
	})`, state), chromedp.EvalAwaitPromise))
	if err != nil {
		return time.Time{}, fmt.Errorf("the browser does not show job %s as %s: %w", job, state, err)
	}
	return time.UnixMicro(int64(at * 1000)), nil
}

// joined is the context of a window that ends with another one, too.
func joined(window, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(window)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}

// Holds returns what the windows hold together.
func (s *screen) Holds(context.Context) (heap, nodes int, err error) {
	for _, w := range s.windows {
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		_, swept := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{})
		used, measured := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
		counted, known := chromedp.Call(ctx, memory.GetDOMCounters, cdp.Empty{})
		cancel()
		if err := errors.Join(swept, measured, known); err != nil {
			return 0, 0, err
		}
		heap, nodes = heap+int(used.UsedSize), nodes+int(counted.Nodes)
	}
	return heap, nodes, nil
}

// The page stays as quick and as small as it was, however long it is open and whatever goes on below it.
func TestThePageLasts(t *testing.T) {
	c := pagesoak.Config{
		Dir: t.TempDir(), Jobs: *soaked, Windows: 10, Period: 2 * time.Second, Periods: 3, Screen: &screen{t: t}, Say: func(line string) { fmt.Println(line) },
	}
	if *minutes > 0 {
		c.Period, c.Periods = time.Minute, *minutes
	}
	if _, err := pagesoak.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
