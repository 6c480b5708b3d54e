package page

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/origin"
)

const (
	// loadTimeout is how long a view may take to read its data, and a verb to be answered.
	loadTimeout = 30 * time.Second
	// maxForm is how large a form may be, in bytes: each byte of an input may become three.
	maxForm = 3*makegood.MaxPayloadBytes + 16<<10
	// policy lets the page load only its own style and script, talk and send forms only home, and stand in no other page.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// Jobs serves the page's requests: a control.Service, or a *client.Client.
type Jobs interface {
	api.Jobs
	api.Schedules
	api.Holds
	api.Agents
	OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error)
	Outline(ctx context.Context, id string) (makegood.Job, error)
	Details(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error)
	Totals(ctx context.Context) (map[makegood.ProcessState]int, error)
	Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error)
	Wake(ctx context.Context, id string) (makegood.Job, error)
}

// Config has the settings and dependencies of a page.
type Config struct {
	// Jobs are the jobs that are shown: in this process, or those of a client.
	Jobs Jobs
	// API answers the paths of the API beside those of the page. Nil: they are not here.
	API http.Handler
	// Where names the engine or stack in a few words: "on this machine, folder data", "stack makegood-prod".
	Where string
	// Interval is the time between two looks at an open view. Zero: a quarter of a second.
	Interval time.Duration
	// Scans: a list of ended jobs reads everything, for money, so it is shown on request only.
	Scans bool
	// Repairs carries out requests for many jobs; Close closes it. Nil: one without storage.
	Repairs *bulk.Keeper
	// Visitor returns the visitor and their rights. Nil: there is no login, and every visitor may do everything.
	Visitor func(*http.Request) Visitor
	// Caller returns the author of a request, for the record. Nil, and empty: the author is not known.
	Caller func(*http.Request) string
	// Host and Names are those under which requests may come: see origin.Rules.
	Host  string
	Names []string
	// Flags point a command at the same engine or stack, such as "--addr 127.0.0.1:5000"; empty: that is the default.
	Flags string
	// Tour is the offer at /welcome for a visitor without jobs. Nil: commands for this server.
	Tour *Tour
	// Logger logs errors. Nil: slog.Default().
	Logger *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// Visitor is a person that looks at the page.
type Visitor struct {
	// Name is shown; empty: no name is.
	Name string
	// ReadOnly: no verb is shown. The proxy before the page must refuse them.
	ReadOnly bool
	// SignsOut: a POST to /logout, beside the page, signs them out.
	SignsOut bool
}

// apiPaths are the paths of Config.API.
var apiPaths = []string{"/api/", "/healthz", "/readyz", "/complete/", "/metrics"}

// Page answers requests of browsers, and passes those of the API on. Its methods are safe for concurrent use.
type Page struct {
	Config
	repairs *bulk.Keeper
	handler http.Handler
	// shells are parsed when they are first shown: two megabytes that an engine without readers of its page need not keep.
	shells map[string]func() shell
	assets assets
	// views finds and loads the view of a path; feeds are the open views, streams has one token per open stream.
	views   *http.ServeMux
	feeds   feeds
	streams chan struct{}
	// looks limits how many views are read at once for streams.
	looks       chan struct{}
	recount     recount
	alikes      alikes
	definitions definitions
	ended       chan struct{}
	end         sync.Once
}

// New returns the page. Close it before the server that it is mounted in is shut down.
func New(c Config) *Page {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Repairs == nil {
		c.Repairs = bulk.New(c.Jobs, c.Logger)
	}
	if c.Caller == nil {
		c.Caller = func(*http.Request) string { return "" }
	}
	if c.Visitor == nil {
		c.Visitor = func(*http.Request) Visitor { return Visitor{} }
	}
	c.Interval = cmp.Or(c.Interval, liveInterval)
	p := &Page{
		Config: c, repairs: c.Repairs, shells: map[string]func() shell{}, assets: readAssets(),
		streams: make(chan struct{}, maxStreams), ended: make(chan struct{}),
		alikes: alikes{by: map[string]*alike{}}, definitions: definitions{byHash: map[string]api.Definition{}}, looks: make(chan struct{}, looksAtOnce),
	}
	p.views, p.feeds = p.loaders(), feeds{page: p, open: map[string]*feed{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", p.stream)
	mux.HandleFunc("GET /jobs/{id}/payloads/{sha256}", p.download)
	for _, v := range views() {
		if v.template != "" {
			p.shells[v.pattern] = sync.OnceValue(func() shell { return parse(v.template) })
		}
		mux.HandleFunc(v.pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, v) })
	}
	for _, asset := range p.assets {
		mux.HandleFunc("GET /"+asset.name, asset.serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { p.refuse(w, r, nothingHere(r)) })
	p.handler = p.besideAPI(origin.Rules{Host: c.Host, Names: c.Names, Refuse: p.refused}.Guard(secured(mux)))
	return p
}

// ServeHTTP answers a request. Strip the prefix under which the page is mounted.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Close ends the open streams, and later ones at once, so that a server can shut down without waiting for them. It
// waits for the jobs that a repair is asking; the rest of the repair goes on with the next page, if it is stored. All
// other requests are answered as before.
func (p *Page) Close() {
	p.end.Do(func() {
		close(p.ended)
		if err := p.repairs.Close(); err != nil {
			p.Logger.Warn("the files of repairs could not be closed well", "error", err)
		}
	})
}

// besideAPI passes requests for the API to the API.
func (p *Page) besideAPI(page http.Handler) http.Handler {
	if p.API == nil {
		return page
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	for _, path := range apiPaths {
		mux.Handle(path, p.API)
	}
	return mux
}

// secured sets the security headers of an answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
		next.ServeHTTP(w, r)
	})
}

// serve answers a request of a view.
func (p *Page) serve(w http.ResponseWriter, r *http.Request, v view) {
	ctx, cancel := context.WithTimeout(p.authored(r), loadTimeout)
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	data, err := v.load(p, r.WithContext(ctx))
	if err != nil {
		p.refuse(w, r, p.problemOf(r, err))
		return
	}
	if to, is := data.(goTo); is {
		// As it is: http.Redirect would make it absolute, and knows no prefix.
		w.Header().Set("Location", rootOf(r.URL.Path)+string(to))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.write(w, r, http.StatusOK, p.shells[v.pattern](), p.frame(r, v, data))
}

// goTo is the result of a verb: the path of the next view, below where the page is mounted.
type goTo string

// authored returns the context of a request with its author, if the author is known.
func (p *Page) authored(r *http.Request) context.Context {
	if who := p.Caller(r); who != "" {
		return api.As(r.Context(), who)
	}
	return r.Context()
}
