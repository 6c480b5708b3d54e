package command

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/login"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/telemetry"
)

// production holds the options of serve that dev lacks. Its methods accept nil, which means dev.
type production struct {
	tokens, trustHeader, roleHeader, operators string
	trustProxy                                 []string
	certFile, keyFile                          string
	log                                        string
	certificate                                *certificate
}

// newServe makes the verb that serves an engine in production.
func newServe(looks pace, linked fs.FS, agents []agent.Handler) *cobra.Command {
	o := devOptions{looks: looks, production: &production{}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the engine, its HTTP API and its page in production",
		Long: fmt.Sprintf(`Serve the engine in production, outside AWS: what dev serves, with a login, TLS, logs for machines, and a folder that keeps
everything, which must be named. docs/production.md says how to run, back up and upgrade it.

Callers show a token of the file --tokens, which "serve token new" makes; browsers sign in with it by a form. Or a reverse proxy
knows its callers and names them in --trust-header, which is believed from the addresses --trust-proxy alone. A reader has
read access to everything; an operator may do everything; an agent takes the tasks of its name. Without a login it listens on
loopback alone. With --tls-cert and --tls-key it speaks https; both files are read again when they change.

SIGTERM and SIGINT stop it: requests that run are answered, attempts that run are made again by the next engine on the folder, and
an agent that does not stop within %s is given up and named. A second signal ends it at once.

Exit status: 0 it was stopped; 1 bad usage, or a workflow file is wrong, no engine was started;
3 it failed; 130 it was told to stop twice.`, agentrun.StopPatience),
		Example: `  makegood serve token new anna --role operator --tokens ./tokens
  makegood serve --data ./data --tokens ./tokens
  makegood serve --data ./data --tokens ./tokens --addr 0.0.0.0:4777 --tls-cert cert.pem --tls-key key.pem --log json
  makegood serve --data ./data --trust-header X-Forwarded-User --trust-proxy 127.0.0.1/32 --operators ./operators --public-url https://jobs.shop.example`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return dev(cmd, o, linked, agents) },
	}
	o.flags(cmd)
	p, flags := o.production, cmd.Flags()
	flags.StringVar(&o.data, "data", "", "`folder` that keeps everything (required)")
	flags.StringVar(&p.tokens, "tokens", "", "`file` of the users and agents, with hashes of their tokens; serve token new writes it")
	flags.StringVar(&p.trustHeader, "trust-header", "", "`NAME` of the header in which a reverse proxy names the user, such as X-Forwarded-User")
	flags.StringArrayVar(&p.trustProxy, "trust-proxy", nil, "`CIDR` of the addresses from which --trust-header is believed, such as 127.0.0.1/32; may be repeated")
	flags.StringVar(&p.roleHeader, "trust-role-header", "", "`NAME` of the header in which the proxy says operator or reader")
	flags.StringVar(&p.operators, "operators", "", "`file` with the names of operators that the proxy may name, one a line; all others are readers")
	flags.StringVar(&p.certFile, "tls-cert", "", "PEM `file` of the certificate and what leads to its root")
	flags.StringVar(&p.keyFile, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&p.log, "log", "text", "`FORM` of the log on standard error: text or json")
	completeFolder(cmd, "data")
	cmd.AddCommand(newServeToken())
	return cmd
}

// open reads the login and the certificate. It returns nil without a login.
func (p *production) open(o devOptions, host string, outside []embedded.Outside) (*gate, error) {
	if p == nil {
		return nil, nil
	}
	config, err := p.login()
	errs := []error{err, p.openCertificate(o.looks.certificate)}
	if p.log != "text" && p.log != "json" {
		errs = append(errs, fmt.Errorf("--log %.40q: want text or json", p.log))
	}
	if o.data == "" {
		errs = append(errs, errors.New("--data is missing: it names the folder that keeps everything, such as /var/lib/makegood"))
	}
	guarded := config.Tokens != nil || config.Proxy.Header != ""
	if !guarded && err == nil && !loopbackHost(host) {
		errs = append(errs, fmt.Errorf("--addr %s can be reached from other machines, without a login: want one (--tokens, or --trust-header and --trust-proxy), or a loopback address", o.addr))
	}
	for _, a := range outside {
		switch {
		case config.Tokens != nil && a.Token != "":
			errs = append(errs, fmt.Errorf("--outside %s has a token in a file of its own, and --tokens is there: `makegood serve token new %s --role agent` makes it one, and --outside %s names it", a.Name, a.Name, a.Name))
		case guarded && config.Tokens == nil && a.Token == "":
			errs = append(errs, fmt.Errorf("--outside %s lets every process take its tasks: want --outside %s=FILE with its token, or --tokens", a.Name, a.Name))
		}
	}
	if err := errors.Join(errs...); err != nil || !guarded {
		return nil, err
	}
	config.Open = append(httpapi.HealthPatterns(), httpapi.Patterns(httpapi.Complete)...)
	config.Agents = httpapi.Patterns(httpapi.Agents)
	config.Host, config.Names, config.Secure = host, o.names(), strings.HasPrefix(o.publicURL, "https:")
	return &gate{config}, nil
}

// login reads the configuration of the login from the flags and their files.
func (p *production) login() (login.Config, error) {
	c := login.Config{Proxy: login.Proxy{Header: p.trustHeader, RoleHeader: p.roleHeader}}
	var errs []error
	for _, text := range p.trustProxy {
		from, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--trust-proxy %.60q: want addresses such as 127.0.0.1/32 or 10.1.0.0/16", text))
		}
		c.Proxy.From = append(c.Proxy.From, from.Masked())
	}
	if p.operators != "" {
		names, err := login.ReadOperators(p.operators)
		if err != nil {
			errs = append(errs, fmt.Errorf("--operators: %w", err))
		}
		c.Proxy.Operators = names
	}
	if p.tokens != "" {
		tokens, err := login.OpenTokens(p.tokens)
		if err != nil {
			errs = append(errs, fmt.Errorf("--tokens: %w", err))
		}
		c.Tokens = tokens
	}
	return c, errors.Join(append(errs, c.Proxy.Check())...)
}

// loopbackHost reports whether only this machine reaches what listens on a host.
func loopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// logger writes the log in the form that was asked for.
func (p *production) logger(w io.Writer, verbose bool) *slog.Logger {
	if p == nil || p.log != "json" {
		return newLogger(w, slog.LevelWarn, verbose)
	}
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(quiet.New(telemetry.LogLines(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), time.Now))
}

func (p *production) scheme() string {
	if p != nil && p.certFile != "" {
		return "https"
	}
	return "http"
}

func (p *production) openCertificate(every time.Duration) (err error) {
	switch {
	case p.certFile == "" && p.keyFile == "":
		return nil
	case p.certFile == "" || p.keyFile == "":
		return errors.New("--tls-cert and --tls-key go together")
	}
	if p.certificate, err = openCertificate(p.certFile, p.keyFile, every); err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	return nil
}

// encrypted wraps a listener in TLS, if there is a certificate.
func (p *production) encrypted(l net.Listener, logger *slog.Logger) net.Listener {
	if p == nil || p.certificate == nil {
		return l
	}
	p.certificate.logger = logger
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate.get, NextProtos: []string{"http/1.1"}})
}

// gate is the login; nil: every caller is let in.
type gate struct{ login.Config }

// before puts the login before a handler.
func (g *gate) before(next http.Handler, logger *slog.Logger) http.Handler {
	if g == nil {
		return next
	}
	g.Logger = logger
	return login.New(g.Config, next)
}

// visitors names the callers of requests. It is false without a login.
type visitors bool

// own returns the function that names the caller of a request. It returns nil where the server has no login.
func (v visitors) own() func(*http.Request) string {
	if !v {
		return nil
	}
	return func(r *http.Request) string {
		caller, ok := login.CallerOf(r.Context())
		if !ok {
			return httpapi.Local // A completion link carries its own token, and needs no login.
		}
		return caller.Name
	}
}

func (v visitors) page() func(*http.Request) page.Visitor {
	if !v {
		return nil
	}
	return func(r *http.Request) page.Visitor {
		caller, _ := login.CallerOf(r.Context())
		return page.Visitor{Name: caller.Name, ReadOnly: caller.Role != login.Operator, SignsOut: caller.Signed()}
	}
}
