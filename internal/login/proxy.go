package login

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
)

// Proxy lists the reverse proxies that may name callers. A header counts only from their addresses, as the connection
// has them: no other header (X-Forwarded-For) changes the caller of a request.
type Proxy struct {
	// Header names the caller, such as X-Forwarded-User. Empty: no proxy is trusted.
	Header string
	// From are the addresses of the proxies.
	From []netip.Prefix
	// RoleHeader is a second header, which says operator or reader. Empty: Operators says it.
	RoleHeader string
	// Operators are the names of the callers with the role Operator; all others are readers.
	Operators []string
}

// Check refuses an incomplete or unsafe configuration.
func (p Proxy) Check() error {
	switch name := http.CanonicalHeaderKey(p.Header); {
	case p.Header == "" && (len(p.From) > 0 || p.RoleHeader != "" || len(p.Operators) > 0):
		return errors.New("--trust-header is missing: it names the header in which the proxy passes the name of the caller, such as X-Forwarded-User")
	case p.Header == "":
		return nil
	case len(p.From) == 0:
		return errors.New("--trust-proxy is missing: it names the addresses from which --trust-header is believed, such as 127.0.0.1/32")
	case slices.Contains([]string{"Authorization", "Cookie", "Host", "Makegood-Who"}, name), strings.ContainsAny(p.Header, " :\r\n\t"):
		return fmt.Errorf("--trust-header %q: want the name of a header that the proxy sets itself, such as X-Forwarded-User", p.Header)
	case p.RoleHeader != "" && len(p.Operators) > 0:
		return errors.New("--trust-role-header and --operators both name the operators: set one")
	}
	return nil
}

// ReadOperators reads a file of names, one a line; a comment begins with #.
func ReadOperators(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// callerOf returns the caller that a trusted proxy names; known is false without one. A header that was sent twice is
// refused: one of the two may be the caller's own.
func (p Proxy) callerOf(r *http.Request) (c Caller, known bool, err error) {
	if p.Header == "" || !p.trusts(r.RemoteAddr) {
		return Caller{}, false, nil
	}
	names := r.Header.Values(p.Header)
	if len(names) == 0 || len(names) == 1 && strings.TrimSpace(names[0]) == "" {
		return Caller{}, false, nil
	}
	name := strings.TrimSpace(names[0])
	if len(names) > 1 || limits.CheckWho(name) != nil {
		return Caller{}, false, fmt.Errorf("%w: the header %s must be there once, with a name", errWrong, p.Header)
	}
	role := Reader
	said := r.Header.Values(p.RoleHeader)
	if p.RoleHeader != "" && len(said) == 1 && strings.EqualFold(strings.TrimSpace(said[0]), string(Operator)) || slices.Contains(p.Operators, name) {
		role = Operator
	}
	return Caller{Name: name, Role: role}, true, nil
}

// trusts reports whether the other end of a connection is a proxy.
func (p Proxy) trusts(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	address := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(p.From, func(from netip.Prefix) bool { return from.Contains(address) })
}
