package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/telemetry/export"
)

// defaultAddr is where dev serves, and where the other verbs look for it.
const defaultAddr = "127.0.0.1:4777"

type devOptions struct {
	data, addr, workflows string
	replies               []string
	outside, concurrency  []string
	breakers              []string
	alert                 string
	changes               string
	publicURL             string
	retention             retention
	verbose               bool
	looks                 pace
	sampleOptions
	// production is what serve has beside; nil: this is dev.
	production *production
}

// newDev makes the verb that serves an engine.
func newDev(looks pace, linked fs.FS, agents []agent.Handler) *cobra.Command {
	o := devOptions{looks: looks}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve the engine and its HTTP API in one process",
		Long: fmt.Sprintf(`Serve the engine and its HTTP API in one process, with the workflows of a folder, the linked agents
and http. The other verbs find it at --addr; GET /api/openapi.json describes the API.

With --data everything is kept in that folder: killed and started again, it goes on where it was cut
off; jobs are deleted --retention after their end. A disk that is full stops it until there is room.
Without --data no job outlives the process. A workflow file of the folder that changes is read again: new jobs go by it,
those that are there keep theirs; one that is wrong is refused, and says why. Files that are linked are
as they were built. The API has no login, so it listens on loopback unless --addr says otherwise.

With --sample it serves a shop's orders instead, in a folder that is new, beside a shop with services that fail now and then, and
names three commands to go on with. On a terminal it offers that where there is no workflow file of yours.

SIGINT and SIGTERM stop it; attempts that run then are made again, and an agent that does not stop within %s
is given up and named. A second signal ends it at once.

Exit status: 0 it was stopped; 1 bad usage, or a workflow file is wrong, no engine was started;
3 it failed; 130 it was told to stop twice.`, agentrun.StopPatience),
		Example: `  makegood dev --sample --open
  makegood dev --data ./data
  makegood dev --workflows ./workflows --addr 127.0.0.1:4777
  makegood dev --outside payments --outside shipping=./shipping.token
  makegood dev --concurrency http=8
  makegood dev --breaker payments
  makegood dev --reply shop=http://127.0.0.1:4790/told --alert https://hooks.example/on-call`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return devOrSample(cmd, o, linked, agents) },
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.data, "data", "", "`folder` that keeps everything; without it no job outlives the process")
	addSample(cmd, &o.sampleOptions)
	completeFolder(cmd, "data")
	return cmd
}

// flags are those that dev and serve have in common.
func (o *devOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addRetention(cmd, &o.retention, devRetention)
	flags.StringVar(&o.addr, "addr", defaultAddr, "`address` to listen on; port 0 takes a free one")
	flags.StringVar(&o.workflows, "workflows", "workflows", "`folder` of the *.yaml and *.yml files to serve, also in folders below; where there is none of that name, the linked ones are served")
	flags.StringArrayVar(&o.outside, "outside", nil, "`NAME` of an agent that runs in other processes, which come to the API for its tasks; NAME=FILE: they must show the token that is in the file. A linked agent of that name gets no tasks then; may be repeated")
	addConcurrency(cmd, &o.concurrency)
	flags.StringArrayVar(&o.breakers, "breaker", nil, "`NAME` of an agent that is paused by itself while its service is down; * is all; may be repeated")
	flags.StringArrayVar(&o.replies, "reply", nil, "register a name that jobs may give as replyTo: `NAME=URL`; the job's announcements are posted there; may be repeated")
	flags.StringVar(&o.publicURL, "public-url", "", "`URL` under which the people asked to complete a step reach this process; it begins their links. Default: http:// and --addr")
	flags.StringVar(&o.alert, "alert", "", "`URL` that is told, by a POST as Slack takes it, of jobs that came into Error, once a day while they stay there, of jobs that will be late, and of an agent that claims no tasks")
	flags.StringVar(&o.changes, "changes", "", "publish every change of every job and of its steps: a `URL` to which they are posted, stderr, or live, for the command changes alone, which goes with each")
	flags.BoolVar(&o.verbose, "verbose", false, "log every decision to standard error")
	completeFolder(cmd, "workflows")
}

func dev(cmd *cobra.Command, o devOptions, linked fs.FS, agents []agent.Handler) (err error) {
	outside, agents, outsideErr := parseOutside(o.outside, agents)
	concurrency, concurrencyErr := parseConcurrency(o.concurrency, agents, outside)
	named := embedded.Config{Agents: agents, Outside: outside}.Named()
	reload := &reloader{folder: o.workflows, every: o.looks.workflows, agents: named, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), current: map[string]loaded{}}
	reload.read = lookOf(o.workflows)
	files, from, err := loadWorkflows(cmd, o.workflows, linked, named)
	replies, replyErr := parseReplies(o.replies)
	alertErr := errors.Join(checkAlert(o.alert), checkChanges(o.changes), o.checkPublicURL())
	host, addrErr := o.host()
	guard, guardErr := o.production.open(o, host, outside)
	if err := errors.Join(err, outsideErr, concurrencyErr, replyErr, alertErr, addrErr, guardErr); err != nil {
		return exit(codeUsage, err)
	}
	for _, f := range files {
		warn(cmd.ErrOrStderr(), f.Compiled)
	}
	warnAbsent(cmd.ErrOrStderr(), files)
	logger := o.production.logger(cmd.ErrOrStderr(), o.verbose)
	slog.SetDefault(logger)
	requests, exported, letGo, err := outward(cmd.Context(), logger)
	if err != nil {
		return err
	}
	defer letGo()
	links := o.publicURL
	config := o.config(replies, func() string { return links })
	config.Agents, config.Outside, config.Concurrency = append([]agent.Handler{requests}, agents...), outside, concurrency
	config.Logger, config.Telemetry = logger, exported.Telemetry()
	config.Changes, config.Live = changesSink(o.changes, cmd.ErrOrStderr(), o.getting(cmd, &links)), o.changes != ""
	config.Notifier = newDevNotifier(logger, o.alert, func() notify.Where { return o.where(links) })
	engine, err := embedded.Open(cmd.Context(), config)
	if err != nil {
		return exit(codeUsage, err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	listener, err := open(cmd.Context(), engine, files, o.addr)
	if err != nil {
		return exit(codeUsage, err)
	}
	if links == "" {
		links = o.production.scheme() + "://" + reachable(listener.Addr())
	}
	o.warnOpen(listener.Addr(), guard != nil, logger)
	printServed(cmd.OutOrStdout(), listener.Addr().String(), o, files, from != o.workflows)
	if o.open {
		showPage(cmd, "http://"+reachable(listener.Addr())+o.firstView())
	}
	visitors := visitors(guard != nil)
	shown, err := newPage(engine, o, served{visitors, host, listener.Addr().String(), exported.Telemetry().Scrape, logger})
	if err != nil {
		return exit(codeFailed, err)
	}
	reload.define = engine.Define
	for _, f := range files {
		reload.current[f.Compiled.Workflow.Name] = loadedOf(f.Compiled)
	}
	if err := serve(cmd.Context(), engine, func(ctx context.Context) error {
		if from == o.workflows {
			defer inBackground(ctx, reload.watch)()
		}
		// Streams would keep the server from ending.
		defer context.AfterFunc(ctx, shown.Close)()
		defer context.AfterFunc(ctx, engine.Hub().Close)()
		return httpapi.Serve(ctx, o.production.encrypted(listener, logger), guard.before(shown, logger), logger)
	}); err != nil {
		return exit(codeFailed, withAdvice(err, o.data))
	}
	return nil
}

// getting returns the command that shows a job of this process. url points to the URL of its page, once that is known.
func (o devOptions) getting(cmd *cobra.Command, url *string) func(id string) string {
	return func(id string) string {
		return strings.TrimSpace(cmd.Root().Name() + " get " + id + " " + o.where(*url).Flags)
	}
}

// where names this process for its page and for alerts; url is the page's.
func (o devOptions) where(url string) notify.Where {
	where := notify.Where{Name: "on this machine, not stored", Page: url}
	if o.data != "" {
		where.Name = "on this machine, folder " + filepath.Base(o.data)
	}
	if o.addr != defaultAddr {
		where.Flags = "--addr " + strings.TrimPrefix(url, "http://")
	}
	return where
}

func newPage(engine *embedded.Engine, o devOptions, s served) (_ *page.Page, err error) {
	jobs := engine.Jobs(localUser(), s.logger)
	handler := httpapi.New(httpapi.Config{
		Jobs: jobs, Caller: s.visitors.own(), Ready: engine.Ready, Changes: engine.Hub(), Host: s.host, Names: o.names(),
		Logger: s.logger, Unknown: localUser(), Outside: engine.Door(), Scrape: s.scrape,
	})
	where, repairs := o.where("http://"+s.addr), bulk.New(jobs, s.logger)
	if o.data != "" {
		if repairs, err = bulk.Open(jobs, filepath.Join(o.data, bulk.Folder), s.logger); err != nil {
			return nil, err
		}
	}
	if o.running != nil {
		where.Name = "the sample, on this machine"
	}
	return page.New(page.Config{Jobs: jobs, Repairs: repairs, Visitor: s.visitors.page(), Caller: s.visitors.own(), API: handler, Where: where.Name, Flags: where.Flags, Tour: o.tour(s.addr), Host: s.host, Names: o.names(), Logger: s.logger}), nil
}

// served is what the page and the API beside it need to know of the process that serves them.
type served struct {
	visitors   visitors
	host, addr string
	scrape     http.Handler
	logger     *slog.Logger
}

// host is that of --addr.
func (o devOptions) host() (string, error) {
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return "", fmt.Errorf("--addr %s: want HOST:PORT, such as %s", o.addr, defaultAddr)
	}
	return host, nil
}

// outward makes the engine's ways to others: the agent http, and the providers of its telemetry. letGo closes both,
// once the engine has stopped.
func outward(ctx context.Context, logger *slog.Logger) (requests *httpagent.Agent, exported *export.Export, letGo func(), err error) {
	if exported, err = export.Open(ctx, export.Options{Logger: logger}); err != nil {
		return nil, nil, nil, exit(codeUsage, err)
	}
	if requests, err = httpagent.New(httpagent.Policy{AllowPrivate: true}); err != nil {
		return nil, nil, nil, exit(codeFailed, errors.Join(err, exported.Close(ctx)))
	}
	return requests, exported, func() {
		requests.Close()
		// A collector without an answer is no failure; the log says which spans were dropped.
		_ = exported.Close(ctx)
	}, nil
}

// config is what the options say of the engine. Links begin with what links returns.
func (o devOptions) config(replies map[string]string, links func() string) embedded.Config {
	listener, names := newDevListener(replies), slices.Sorted(maps.Keys(replies))
	return embedded.Config{
		Dir: o.data, Retention: time.Duration(o.retention), Breakers: o.breakers, Listener: listener, Replies: names, Asker: listener, Asked: names,
		Link: func(token string) string { return links() + httpapi.LinkPath(token) },
	}
}

// checkPublicURL refuses what no link can begin with, and leaves no slash at its end.
func (o *devOptions) checkPublicURL() error {
	u, err := url.Parse(o.publicURL)
	if o.publicURL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		return fmt.Errorf("--public-url %s: want a URL such as https://shop.example", o.publicURL)
	}
	o.publicURL = strings.TrimSuffix(o.publicURL, "/")
	return nil
}

// names are those, beside that of --addr, under which the API may be asked.
func (o devOptions) names() []string {
	if u, err := url.Parse(o.publicURL); err == nil && u.Hostname() != "" {
		return []string{u.Hostname()}
	}
	return nil
}

// reachable is an address that leads to a listener from this machine.
func reachable(a net.Addr) string {
	address, err := netip.ParseAddrPort(a.String())
	if err == nil && address.Addr().IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(address.Port())))
	}
	return a.String()
}

// inBackground starts f, and returns what ends it and waits until it has ended.
func inBackground(ctx context.Context, f func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// localUser names the user of this process; empty: unknown.
func localUser() string {
	who, err := user.Current()
	if err != nil {
		return ""
	}
	return who.Username
}

// open makes the workflows known and listens.
func open(ctx context.Context, engine *embedded.Engine, files []workflowfile.File, addr string) (net.Listener, error) {
	for _, f := range files {
		if err := engine.Define(ctx, f.Compiled); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w; --addr names another address", err)
	}
	return listener, nil
}

// serve runs the engine and the API until ctx ends or one of them fails. The API stops first, so that the requests
// that it has accepted still reach the agents.
func serve(ctx context.Context, engine *embedded.Engine, api func(context.Context) error) error {
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	running, stopRunning := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRunning()
	ran := make(chan error, 1)
	go func() {
		defer stopServing()
		ran <- engine.Run(running)
	}()
	// Agents that wait for tasks need not wait for the end of the API's patience.
	defer context.AfterFunc(serving, engine.Door().Close)()
	err := api(serving)
	stopRunning()
	return errors.Join(err, <-ran)
}

// withAdvice says what to do about a store that can go on no more.
func withAdvice(err error, data string) error {
	if !errors.Is(err, store.ErrFailed) {
		return err
	}
	if data == "" {
		return fmt.Errorf("%w; no job was kept: look at the disk of the temporary folder and start again", err)
	}
	return fmt.Errorf("%w; look at the disk of %s and start again with the same --data: jobs go on where they were cut off", err, data)
}

// loadWorkflows reads the workflow files to serve, and says where they are from: those of a folder or, where none was
// asked for and there is none of the usual name, those that are linked.
func loadWorkflows(cmd *cobra.Command, folder string, linked fs.FS, agents []workflowfile.Named) (files []workflowfile.File, from string, err error) {
	_, err = os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) && !cmd.Flags().Changed("workflows") && linked != nil {
		files, err = workflowfile.ReadAll(linked, "", workflowfile.WithAgents(agents...))
		return files, "this program", err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w; --workflows names the folder of your workflow files", err)
	}
	files, err = workflowfile.ReadAll(os.DirFS(folder), folder, workflowfile.WithAgents(agents...))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there is no workflow file (*.yaml, *.yml) in it or below", folder)
	}
	return files, folder, err
}

// warnOpen warns about an address that other machines reach.
func (o devOptions) warnOpen(a net.Addr, guarded bool, logger *slog.Logger) {
	switch {
	case isLoopback(a):
	case !guarded:
		logger.Warn("the API has no login, and is open to every caller that reaches this address", "addr", a.String())
	case o.production.scheme() == "http" && !strings.HasPrefix(o.publicURL, "https:"):
		logger.Warn("tokens come to this address in the clear: want --tls-cert and --tls-key, or a proxy with TLS before it and --public-url https://...", "addr", a.String())
	}
}

func isLoopback(a net.Addr) bool {
	address, err := netip.ParseAddrPort(a.String())
	return err == nil && address.Addr().IsLoopback()
}

// printServed prints the files that are served, and where. For linked files it says that they are not read again.
func printServed(w io.Writer, addr string, o devOptions, files []workflowfile.File, linked bool) {
	var text strings.Builder
	fmt.Fprintf(&text, "makegood serves %s://%s\n", o.production.scheme(), addr)
	for _, f := range files {
		fmt.Fprintf(&text, "  workflow %s, %s, from %s\n", f.Compiled.Workflow.Name, count(len(f.Compiled.Workflow.Steps), "step"), f.Name)
	}
	if linked {
		text.WriteString("  they are linked into this command: build it again to change them, or name their folder with --workflows\n")
	}
	switch {
	case o.running != nil:
		printSample(&text, o, addr)
	case o.data == "":
		text.WriteString("  no job outlives this process: --data names a folder that keeps everything\n")
	case o.retention == 0:
		fmt.Fprintf(&text, "  everything is kept in %s\n", o.data)
	default:
		fmt.Fprintf(&text, "  everything is kept in %s, jobs for %s after their end\n", o.data, o.retention)
	}
	_, _ = io.WriteString(w, text.String()) // a closed standard output is no error
}
