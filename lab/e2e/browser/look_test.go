//go:build browser

package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// axeVariable says where axe-core is; make browser installs it, and sets it.
const axeVariable = "MAKEGOOD_AXE"

// look is how a person has a page before them.
type look struct {
	width, height int64
	dark, touch   bool
}

func (l look) String() string {
	shade := "light"
	if l.dark {
		shade = "dark"
	}
	return fmt.Sprintf("%s, %d px", shade, l.width)
}

// looks are those that each view is held to: a phone and a screen, by day and by night.
func looks() []look {
	return []look{
		{width: 1440, height: 1000},
		{width: 1440, height: 1000, dark: true},
		{width: 390, height: 844, touch: true},
		{width: 390, height: 844, touch: true, dark: true},
	}
}

// as shows the window so from now on.
func (w *window) as(l look) {
	w.t.Helper()
	shade := "light"
	if l.dark {
		shade = "dark"
	}
	call(w, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.touch,
	})
	call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: shade},
		{Name: "prefers-reduced-motion", Value: "reduce"}, // what moves has no colour that could be measured
	}})
}

// finding is what axe has against a page.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

func (f finding) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s (%s): %s", f.ID, f.Impact, f.Help)
	for _, n := range f.Nodes {
		fmt.Fprintf(&s, "\n\t%.300s\n\t\t%s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n\t\t"))
	}
	return s.String()
}

// readable holds the page that is open to what everybody needs of it, in each look: axe finds nothing, and nothing must be
// scrolled sideways.
func (w *window) readable() {
	w.t.Helper()
	for _, l := range looks() {
		w.as(l)
		at := value[string](w, "location.pathname") + ", " + l.String()
		if wide := value[string](w, tooWide); wide != "" {
			w.t.Errorf("%s: this must be scrolled sideways: %s", at, wide)
		}
		for _, f := range w.findings() {
			w.t.Errorf("%s: %s", at, f)
		}
	}
	w.as(looks()[0])
}

// findings are what axe has against the page that is open.
func (w *window) findings() []finding {
	w.t.Helper()
	if value[bool](w, `typeof axe === "undefined"`) {
		axe, err := os.ReadFile(os.Getenv(axeVariable))
		if err != nil {
			w.t.Fatalf("axe-core: %v: run this by make browser", err)
		}
		value[bool](w, string(axe)+"; true")
	}
	text := value[string](w, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	var found []finding
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// tooWide names the first element that makes the page wider than the window; empty: none does.
const tooWide = `(() => {
	const root = document.documentElement, has = root.clientWidth;
	if (root.scrollWidth <= has) return "";
	for (const e of document.body.querySelectorAll("*"))
		if (e.getBoundingClientRect().right > has + 1 && !e.closest("svg svg, [hidden], nav, .scroll")) return e.outerHTML.slice(0, 200);
	return root.scrollWidth + " px of " + has;
})()`

// withoutScript lets the window run no script of any page from now on.
func (w *window) withoutScript() {
	w.t.Helper()
	call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// The tests are nothing worth if what they look for could not be found: a page with one of each mistake.
func TestAMistakeOfAPageIsFound(t *testing.T) {
	w := newWindow(t, "about:blank")
	w.open("")
	value[bool](w, `document.write('<!doctype html><html lang="en"><title>t</title><main><h1>h</h1><img src="data:,"><p style="width:3000px">wide'), true`)
	if wide := value[string](w, tooWide); !strings.HasPrefix(wide, "<p style") {
		t.Errorf("got %q as too wide, want the paragraph", wide)
	}
	if found := fmt.Sprint(w.findings()); !strings.Contains(found, "image-alt") {
		t.Errorf("axe finds %s, want the image without a text", found)
	}
	value[bool](w, `console.error("as planted"), Promise.reject(new Error("as planted, too")), true`)
	w.until("the console has spoken twice", func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.wrong) == 2 && strings.Contains(w.wrong[0]+w.wrong[1], "as planted, too"), nil
	})
	w.excuse("as planted")
}
