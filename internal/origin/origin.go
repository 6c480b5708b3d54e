// Package origin lets in only requests that name this host, and no changes by a page of another origin. It knows no
// route.
package origin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Rules say under which names requests may come, and how others are refused.
type Rules struct {
	// Host is the host that was listened on. Loopback is always allowed in the header Host; so is this one; and any
	// address, if it is the unspecified one (0.0.0.0) or empty.
	Host string
	// Names are others that are allowed.
	Names []string
	// Bypass are patterns of http.ServeMux that a page of any origin may ask for.
	Bypass []string
	// Refuse answers a request that is not let in.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, text string)
}

// Guard returns next behind the rules. A page whose own name was made to lead to this machine sends that name in Host.
func (o Rules) Guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.Refuse(w, r, http.StatusForbidden, "a page of another origin may not ask for this")
	}))
	for _, pattern := range o.Bypass {
		origins.AddInsecureBypassPattern(pattern)
	}
	inner := origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !o.knows(r.Host) {
			o.Refuse(w, r, http.StatusMisdirectedRequest, fmt.Sprintf("the host %.100q is not this one: use its loopback address or the one of --addr", r.Host))
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// knows reports whether host, as a request has it, is one under which may be asked.
func (o Rules) knows(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	return HostAllowed(host, o.Host) || slices.ContainsFunc(o.Names, func(known string) bool { return strings.EqualFold(known, name) })
}

// HostAllowed reports whether host, as a request has it, with or without a port, is ours. An address in
// it cannot be the work of a foreign name server, so all are allowed where all are listened on.
func HostAllowed(host, configured string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") || configured != "" && strings.EqualFold(host, configured) {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	everywhere := configured == "" || configured == "0.0.0.0" || configured == "::"
	return address.IsLoopback() || everywhere
}
