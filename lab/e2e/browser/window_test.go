//go:build browser

package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	// patience is how long a test waits for what must come; it decides nothing.
	patience = 2 * time.Minute
	// glance is how often it looks.
	glance = 20 * time.Millisecond
)

// window is a window of the browser. What a person would find by its name is found by the role and the name that the browser
// tells a screen reader: what has none cannot be pressed here either.
type window struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu sync.Mutex
	// wrong is what the console has said; excused is what the test has brought about.
	wrong, excused []string
}

// newWindow opens an empty window, with nothing kept from other tests, on what serves at base.
func newWindow(t *testing.T, base string) *window {
	t.Helper()
	return windowIn(t, chromium, base, chromedp.WithNewBrowserContext())
}

// beside opens one more window of the same person.
func (w *window) beside() *window {
	w.t.Helper()
	return windowIn(w.t, w.ctx, w.base, chromedp.WithNewWindow(true))
}

func windowIn(t *testing.T, parent context.Context, base string, options ...chromedp.ContextOption) *window {
	t.Helper()
	w := &window{t: t, base: base}
	options = append(options, chromedp.WithListener(w.hear))
	ctx, shut := chromedp.NewContext(parent, options...)
	w.ctx = ctx
	t.Cleanup(func() {
		if t.Failed() {
			w.describe()
		}
		shut()
		w.judge()
	})
	w.do(chromedp.Do(ctx))
	call(w, log.Enable, cdp.Empty{})
	return w
}

// hear notes what the console says.
func (w *window) hear(event any) {
	var said string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		for _, a := range e.Args {
			said += a.Description + string(a.Value) + " "
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		said = fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.URL, e.Entry.Text)
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, said)
}

// excuse lets the console say what the test brings about: a request that is refused, an engine that is gone.
func (w *window) excuse(parts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.excused = append(w.excused, parts...)
}

// judge fails the test for whatever the console has said that was not excused.
func (w *window) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, said := range w.wrong {
		if !slices.ContainsFunc(w.excused, func(part string) bool { return strings.Contains(said, part) }) {
			w.t.Errorf("the console says: %s", said)
		}
	}
}

// describe tells whoever looks for why a test failed what stood in the window.
func (w *window) describe() {
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body?.innerText ?? "")`))
	w.t.Logf("the window shows, %v:\n%.6000s", err, text)
}

func (w *window) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// call sends a command to the window, and returns what it answers.
func call[P, R any](w *window, command cdp.Command[P, R], params P) R {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		w.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// open goes to a path, and waits until the page has loaded.
func (w *window) open(path string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(w.base+path)); err != nil {
		w.t.Fatalf("open %s: %v", path, err)
	}
}

// value is what an expression of JavaScript gives.
func value[T any](w *window, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// until waits until something is so. An error is no end of it: pages come and go meanwhile.
func (w *window) until(what string, is func(ctx context.Context) (bool, error)) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var last error
	for {
		so, err := is(ctx)
		if so && err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("%s: not after %s, %v", what, patience, last)
		}
	}
}

// holds waits until an expression of JavaScript is true.
func (w *window) holds(expression string) {
	w.t.Helper()
	w.until(expression, func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	})
}

// sees waits until all of the texts stand on the page, where they can be read.
func (w *window) sees(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		quoted, err := json.Marshal(strings.ToLower(text))
		w.do(err)
		w.holds(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").toLowerCase().includes(%s)`, quoted))
	}
}

// lacks waits until none of the texts can be read on the page.
func (w *window) lacks(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		quoted, err := json.Marshal(strings.ToLower(text))
		w.do(err)
		w.holds(fmt.Sprintf(`!document.body.innerText.replace(/\s+/g, " ").toLowerCase().includes(%s)`, quoted))
	}
}

// element is something of the page, as a screen reader knows it.
type element struct {
	id         cdp.BackendNodeID
	role, name string
}

// elements are those of a role, in the order of the page.
func (w *window) elements(ctx context.Context, role string) ([]element, error) {
	root, err := chromedp.Call(ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		return nil, err
	}
	found, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: root.Root.BackendNodeID, Role: role})
	if err != nil {
		return nil, err
	}
	var all []element
	for _, n := range found.Nodes {
		if n.Ignored {
			continue
		}
		e := element{id: n.BackendDOMNodeID, role: role}
		if n.Name != nil {
			if err := json.Unmarshal(n.Name.Value, &e.name); err != nil {
				return nil, err
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// find waits for an element of a role and a name. The first one whose name is that, or else begins so.
func (w *window) find(role, name string) element {
	w.t.Helper()
	var e element
	var have []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("there is no %s %q, but %q", role, name, have)
		}
	}()
	w.until(fmt.Sprintf("find the %s %q", role, name), func(ctx context.Context) (bool, error) {
		all, err := w.elements(ctx, role)
		have = nil
		for _, one := range all {
			have = append(have, one.name)
		}
		at := slices.IndexFunc(all, func(e element) bool { return e.name == name })
		if at < 0 {
			at = slices.IndexFunc(all, func(e element) bool { return strings.HasPrefix(e.name, name) })
		}
		if at >= 0 {
			e = all[at]
		}
		return at >= 0, err
	})
	return e
}

// click presses with the mouse what has this role and name, where it stands on the screen.
func (w *window) click(role, name string) {
	w.t.Helper()
	w.until(fmt.Sprintf("click on the %s %q", role, name), func(ctx context.Context) (bool, error) {
		e := w.find(role, name)
		x, y, err := place(ctx, e.id)
		if err != nil {
			return false, err
		}
		return true, chromedp.Do(ctx, chromedp.MouseClickXY(x, y))
	})
}

// place brings an element onto the screen, and returns the middle of it.
func place(ctx context.Context, id cdp.BackendNodeID) (x, y float64, err error) {
	if _, err = chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: id}); err != nil {
		return 0, 0, err
	}
	quads, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: id})
	if err != nil || len(quads.Quads) == 0 {
		return 0, 0, fmt.Errorf("it is nowhere on the screen: %w", err)
	}
	q := quads.Quads[0]
	return (q[0] + q[2] + q[4] + q[6]) / 4, (q[1] + q[3] + q[5] + q[7]) / 4, nil
}

// fill writes text into a field, instead of what is there.
func (w *window) fill(role, name, text string) {
	w.t.Helper()
	e := w.find(role, name)
	call(w, dom.Focus, dom.FocusParams{BackendNodeID: e.id})
	value[bool](w, `document.activeElement.select?.() ?? true, true`)
	w.press(text)
}

// press types keys, wherever the focus is. A key that the page takes for itself writes nothing, as in a person's hands.
func (w *window) press(keys string) {
	w.t.Helper()
	for _, r := range keys {
		strokes := kb.Encode(r)
		down, up := strokes[0], strokes[len(strokes)-1]
		if len(strokes) == 3 {
			down.Text = strokes[1].Text
		}
		call(w, input.DispatchKeyEvent, *down)
		call(w, input.DispatchKeyEvent, *up)
	}
}
