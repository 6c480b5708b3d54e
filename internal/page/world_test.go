package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// tripFile is the workflow of the tests: an input {"fail": "charge"} has that step fail for good, {"hold": true} has it wait.
const tripFile = `name: trip
onFailure: stop
steps:
  - name: reserve
    agent: shop
    with: "${ .input }"
    undo: {action: release}
  - name: charge
    agent: shop
    with: "${ .input }"
`

// world is an engine with its page on a server.
type world struct {
	*engine.Engine
	t   *testing.T
	url string
	// hold lets attempts of the action that are held go on.
	hold chan struct{}
}

// newWorld starts an engine with the workflow trip, and the page below /makegood/.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, fstest.MapFS{"trip.yaml": {Data: []byte(tripFile)}, "voyage.yaml": {Data: []byte(voyageFile)}})
}

// newWorldOf starts an engine with these workflows, as newWorld does.
func newWorldOf(t *testing.T, workflows fstest.MapFS) *world {
	t.Helper()
	w := &world{t: t, hold: make(chan struct{})}
	eng, err := engine.Open(t.Context(), engine.Options{
		Workflows: workflows, Agents: []agent.Handler{shop(w.hold)}, Breakers: []string{"shop"},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Engine = eng
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	mux := http.NewServeMux()
	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, eng.Close()); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	w.url = server.URL + "/makegood/"
	return w
}

// shop is the agent of trip.
func shop(hold chan struct{}) agent.Handler {
	work := func(step string) func(context.Context, order) (string, error) {
		return func(ctx context.Context, o order) (string, error) {
			switch {
			case o.Fail == step:
				return "", agent.Final(errors.New("the card was declined"))
			case o.Down:
				return "", errors.New("connection refused")
			case o.Hold:
				if o.Report != "" {
					if err := errors.Join(agent.Progress(ctx, o.Report), agent.Heartbeat(ctx)); err != nil {
						return "", err
					}
				}
				select {
				case <-hold:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			return step + " is done", nil
		}
	}
	return agent.New("shop", agent.Do("reserve", work("reserve")), agent.Do("charge", work("charge")), agent.Do("release", work("release")))
}

// order is the input of trip.
type order struct {
	Fail string `json:"fail"`
	Hold bool   `json:"hold"`
	Down bool   `json:"down"`
	// Report is what who is held reports first.
	Report string `json:"report"`
}

// submit stores a job, and waits for its end or for Error if settled.
func (w *world) submit(id, input string, settled bool) {
	w.t.Helper()
	if _, err := w.Submit(w.t.Context(), makegood.Submission{Workflow: "trip", ID: id, Input: json.RawMessage(input)}); err != nil {
		w.t.Fatal(err)
	}
	if !settled {
		return
	}
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	if _, err := w.Wait(ctx, id); err != nil {
		w.t.Fatal(err)
	}
}

// answered is what a browser got.
type answered struct {
	status int
	header http.Header
	text   string
	// at is where it ended up, after redirects.
	at *url.URL
}

// get asks for a path below where the page is mounted.
func (w *world) get(path string) answered { return w.do(http.MethodGet, path, nil, nil) }

// post sends a form, as a page of this origin does.
func (w *world) post(path string, form url.Values) answered {
	return w.do(http.MethodPost, path, form, http.Header{"Sec-Fetch-Site": {"same-origin"}})
}

func (w *world) do(method, path string, form url.Values, header http.Header) answered {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answered{answer.StatusCode, answer.Header, string(body), answer.Request.URL}
}

// eventually asks for a path until it has text, and returns that answer.
func (w *world) eventually(path, text string) answered {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := w.get(path)
		if strings.Contains(got.text, text) {
			return got
		}
		if time.Now().After(deadline) {
			got.wants(w.t, text)
			return got
		}
	}
}

// lacks fails the test if the page has one of the texts.
func (a answered) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.text, text) {
			t.Errorf("the page has %q:\n%s", text, a.text)
		}
	}
}

// wants fails the test unless the text has every one of these.
func (a answered) wants(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("got no %q in the page, which is:\n%s", text, a.text)
		}
	}
}
