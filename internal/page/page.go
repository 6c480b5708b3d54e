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
	"github.com/makegood-dev/makegood/internal/origin"
	"github.com/makegood-dev/makegood/internal/repair"
)

const (
	// loadTimeout is how long a view may take to read what it shows, and a verb until it is answered.
	loadTimeout = 30 * time.Second
	// maxForm is how large a form may be, in bytes: each byte of an input may become three.
	maxForm = 3*makegood.MaxPayloadBytes + 16<<10
	// policy lets the page load nothing but its own style and script, talk and send forms nowhere else, and stand in no other.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// Jobs is what the page asks: a control.Service, or a *client.Client.
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

// Config is what a page is made of.
type Config struct {
	// Jobs are the jobs that are shown: in this process, or those of a client.
	Jobs Jobs
	// API answers the paths of the API beside those of the page. Nil: they are not here.
	API http.Handler
	// Where says what is shown and acted upon, in a few words: "on this machine, folder data", "stack makegood-prod".
	Where string
	// Interval is how far apart a view that somebody has open is looked at. Zero: a quarter of a second.
	Interval time.Duration
	// Scans: a list of what has ended reads everything, and is paid for, so it is shown to who asks for it.
	Scans bool
	// Repairs carries out what is asked of many jobs; Close closes it. Nil: one that keeps nothing.
	Repairs *repair.Keeper
	// Visitor says who looks at the page, and what they may. Nil: nobody has signed in, and everybody may do everything.
	Visitor func(*http.Request) Visitor
	// Caller returns the author of a request, for what is kept of it. Nil, and empty: the author is not known.
	Caller func(*http.Request) string
	// Host and Names are those under which requests may come: see origin.Rules.
	Host  string
	Names []string
	// Flags have a command of the page ask what the page asks, such as "--addr 127.0.0.1:5000"; empty: it does by itself.
	Flags string
	// Tour is what whoever has no jobs yet is offered at /welcome. Nil: commands for what is served.
	Tour *Tour
	// Logger hears of what goes wrong. Nil: slog.Default().
	Logger *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// Visitor is who looks at the page.
type Visitor struct {
	// Name is shown; empty: nothing is.
	Name string
	// ReadOnly: no verb is shown. Whatever stands before the page refuses them.
	ReadOnly bool
	// SignsOut: a POST to /logout, beside the page, signs them out.
	SignsOut bool
}

// apiPaths are those that belong to Config.API.
var apiPaths = []string{"/api/", "/healthz", "/readyz", "/complete/", "/metrics"}

// Page answers requests of browsers, and passes those of the API on. Its methods may be called by many goroutines at once.
type Page struct {
	Config
	repairs *repair.Keeper
	handler http.Handler
	// shells are parsed when they are first shown: two megabytes that an engine whose page nobody opens need not keep.
	shells map[string]func() shell
	assets assets
	// views find the view of a path, and load it; feeds are those that somebody has open, streams one for each who has.
	views   *http.ServeMux
	feeds   feeds
	streams chan struct{}
	// looks are the turns of those who look at views for streams.
	looks       chan struct{}
	recount     recount
	alikes      alikes
	definitions definitions
	ended       chan struct{}
	end         sync.Once
}

// New returns the page. Close it before the server that it is mounted in is shut down.
func New(c Config) *Page {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Repairs == nil {
		c.Repairs = repair.New(c.Jobs, c.Logger)
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

// Close ends the streams that are open, and those that are opened later at once, so that a server can be shut down without
// waiting for them, and waits for the jobs that a repair is asking; the rest of it goes on with the next page, if it is kept. Everything
// else is answered as before.
func (p *Page) Close() {
	p.end.Do(func() {
		close(p.ended)
		if err := p.repairs.Close(); err != nil {
			p.Logger.Warn("the files of repairs could not be closed well", "error", err)
		}
	})
}

// besideAPI passes the API what is its.
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

// secured says what a browser may do with an answer.
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

// goTo is what a verb returns: the path, below where the page is mounted, of what is shown next.
type goTo string

// authored returns the context of a request with its author, if the author is known.
func (p *Page) authored(r *http.Request) context.Context {
	if who := p.Caller(r); who != "" {
		return api.As(r.Context(), who)
	}
	return r.Context()
}
