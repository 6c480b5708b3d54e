// Package httpapi serves jobs over HTTP: submit, look, list, and ask for cancel, undo, resubmit, pause and resume; the
// whole API, or the routes of one door. Document describes the API, and is made from the table that serves it.
//
// It turns requests into calls of a control.Service, and results into answers: it holds no rule about jobs, keeps no
// state, and logs no payload.
//
// It has no users and no passwords: any client that reaches it may do everything that it serves, under the name that
// Config.Caller gives it. So it is made for loopback, or to stand behind a proxy that knows its callers, and refuses
// the requests that a web page on the same machine could send: host names that are not its own, bodies that are not
// declared as JSON, requests from another origin.
package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// maxOverhead is the room in a body beside an input: names, white space, an id.
	maxOverhead = 16 << 10
	// maxBody is how large the body of a submission may be, in bytes.
	maxBody = makegood.MaxPayloadBytes + maxOverhead
	// maxPublication is the limit of a workflow file: as JSON each quote and each end of line is two bytes.
	maxPublication = 2*workflowfile.MaxSourceBytes + maxOverhead
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 32 << 10

	// DefaultLimit and MaxLimit are how many jobs a page of a list has.
	DefaultLimit = 50
	MaxLimit     = 200
	// MaxDetails is the maximum number of jobs on a page that includes all their steps.
	MaxDetails = 50

	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	// handleTimeout is how long the store may take; longer than limits.MaxTaskWait, so that agents can wait for tasks.
	handleTimeout = 30 * time.Second
	// stopTimeout is how long requests that run may take after Serve was told to stop.
	stopTimeout = 5 * time.Second
)

// Outside gives tasks to agents that run in other processes, and takes their replies: an agentdoor.Door, whose methods
// document their effects and errors.
type Outside interface {
	Allow(agent, token string) error
	Take(ctx context.Context, agent string, ask agentdoor.Ask) ([]agentdoor.Task, error)
	Reply(ctx context.Context, body string) (machine.Verdict, error)
	Heartbeat(ctx context.Context, id string, r job.Reply, progress json.RawMessage) (agentdoor.Standing, error)
	WritePayload(ctx context.Context, a agentdoor.Attempt, mediaType string, from io.Reader) (makegood.Payload, error)
	OpenPayload(ctx context.Context, a agentdoor.Attempt, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

var _ Outside = (*agentdoor.Door)(nil)

// Config has the settings and dependencies of an API.
type Config struct {
	// Jobs serves jobs and everything that belongs to them. Nil: there are none.
	Jobs *control.Service
	// Doors says where large payloads are written and read instead, where this process can carry none; nil: nowhere.
	Doors payload.Doors
	// Scrape answers GET /metrics; nil: there is no such page.
	Scrape http.Handler
	// Changes is the source for followers of changes; nil: this process keeps no changes.
	Changes *changes.Hub
	// Ready says why this process cannot work on jobs now, such as an unwritable store; nil: there is no /readyz here.
	Ready func(ctx context.Context) error
	// Host is the host that it was told to listen on, as in --addr. Loopback is always allowed in the
	// header Host; so is this one; and any address, if it is the unspecified one (0.0.0.0).
	Host string
	// Names are others under which it may be asked: those of a server that it is mounted in.
	Names []string
	// Outside serves agents that run in other processes. Nil: there are none.
	Outside Outside
	// Door is the part of the API that is served here. Empty: the whole API.
	Door Door
	// Caller names the caller of a request, for the record. Nil: callers name themselves (protocol.WhoHeader), or are
	// Unknown.
	Caller func(*http.Request) string
	// Unknown is the name of callers that give none; empty: Local.
	Unknown string
	Logger  *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// api answers requests.
type handlers struct {
	Config
	document []byte
	// link is the page of a link, linkPolicy its content security policy.
	link       *template.Template
	linkPolicy string
	// run distinguishes the places of changes in this process from those in another; followers are the open streams.
	run       string
	followers chan struct{}
	// uploads has room for as many payloads as submitters may write at once.
	uploads chan struct{}
}

// New returns the handler of the API.
func New(c Config) http.Handler {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jobs == nil {
		c.Jobs = control.New(control.Config{})
	}
	if c.Caller == nil {
		c.Caller = claimed(cmp.Or(c.Unknown, Local))
	}
	a := &handlers{Config: c, document: Document(), link: parseLink(), linkPolicy: linkPolicy(), run: strconv.FormatInt(c.Now().UnixMilli(), 36), followers: make(chan struct{}, maxFollowers), uploads: make(chan struct{}, limits.MaxUploads)}
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, r) })
	}
	if c.Door == "" || c.Door == Complete {
		mux.HandleFunc("GET "+linkPattern, patiently(a.showLink))
		mux.HandleFunc("POST "+linkPattern, patiently(a.answerLink))
	}
	if c.Scrape != nil && c.Door == "" {
		mux.Handle("GET /metrics", c.Scrape)
	}
	if c.Ready != nil && c.Door == "" {
		mux.HandleFunc("GET "+readyPath, a.serveReady(&readiness{look: c.Ready, now: c.Now}))
	}
	if c.Door == "" {
		mux.HandleFunc("GET "+changesPath, a.follow)
	}
	return a.guard(a.strangers(mux))
}

// serve answers a request of a route.
func (a *handlers) serve(w http.ResponseWriter, req *http.Request, r route) {
	if a.Door != "" && a.Door != r.door {
		a.refuse(w, newProblem(http.StatusForbidden, "%s %s belongs to the door %s, and this is the door %s", r.method, r.path, r.door, a.Door))
		return
	}
	if err := limits.CheckWho(req.Header.Get(protocol.WhoHeader)); err != nil {
		a.refuse(w, newProblem(http.StatusBadRequest, "the header %s: it %v", protocol.WhoHeader, err))
		return
	}
	if r.stream != nil {
		slowly(w, req, func(w http.ResponseWriter, req *http.Request) { r.stream(a, w, req) })
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), handleTimeout)
	defer cancel()
	if r.body != nil {
		if p := mustBeJSON(req); p != nil && !r.mayBeEmpty(req) {
			a.refuse(w, p)
			return
		}
		req.Body = http.MaxBytesReader(w, req.Body, max(r.limit, maxOverhead))
	}
	answer, err := r.handle(a, req.WithContext(api.As(ctx, a.Caller(req))))
	if err != nil {
		a.refuse(w, a.problemOf(req, err))
		return
	}
	if answer.location != "" {
		w.Header().Set("Location", answer.location)
	}
	write(w, answer.status, answer.body)
}

// Serve answers requests that come to l until ctx ends, then lets those that run end, for at most five
// seconds, and closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler, logger *slog.Logger) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err := s.Shutdown(patience)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.Close()
		}
		stopped <- err
	})
	err := s.Serve(l)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
