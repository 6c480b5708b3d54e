package httpagent

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Policy selects the addresses that may be connected to. It can never allow these: link-local and metadata addresses,
// unspecified, multicast and broadcast ones, and the Lambda runtime API.
type Policy struct {
	// AllowPrivate allows loopback and private addresses: for the embedded engine.
	AllowPrivate bool
	// Allow lists host names, addresses and CIDR blocks that are allowed although they are private.
	Allow []string
	// RuntimeAPI is the value of AWS_LAMBDA_RUNTIME_API, HOST:PORT with or without a path; empty: there is none.
	RuntimeAPI string
}

// guard is a Policy, read.
type guard struct {
	allowPrivate bool
	hosts        map[string]bool
	blocks       []netip.Prefix
	// runtimePort is that of the runtime API; zero: there is none. runtime is its address, and not
	// valid when it goes by a name.
	runtimePort uint16
	runtime     netip.Addr
}

// block is a range of addresses that is refused.
type block struct {
	netip.Prefix
	what string
}

// neverBlocks are refused always, beside those that netip has a word for.
var neverBlocks = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "not an address of a host"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	// Services of clouds about the machine itself that are not link-local: EC2, Google, Azure, Alibaba.
	{netip.MustParsePrefix("fd00:ec2::/32"), "metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata"},
}

// privateBlocks are private, beside those that netip has a word for.
var privateBlocks = []block{
	{netip.MustParsePrefix("100.64.0.0/10"), "private (carrier-grade NAT)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "private (protocol assignments)"},
	{netip.MustParsePrefix("198.18.0.0/15"), "private (benchmarks)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "private (reserved)"},
	{netip.MustParsePrefix("fec0::/10"), "private (site-local)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "private (local NAT64)"},
}

// IPv6 blocks with addresses that hold the IPv4 address that they lead to.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// addressError says that an address may not be connected to.
type addressError struct {
	addr netip.Addr
	why  string
}

func (e *addressError) Error() string {
	return fmt.Sprintf("address %s is not allowed: %s", e.addr, e.why)
}

func newGuard(p Policy) (*guard, error) {
	g := &guard{allowPrivate: p.AllowPrivate, hosts: make(map[string]bool)}
	for _, entry := range p.Allow {
		if err := g.allow(strings.TrimSpace(entry)); err != nil {
			return nil, err
		}
	}
	if p.RuntimeAPI == "" {
		return g, nil
	}
	// Lambda's own client for Go takes an address with a path behind it, and hosts for tests use one.
	address, _, _ := strings.Cut(p.RuntimeAPI, "/")
	host, text, err := net.SplitHostPort(address)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || host == "" || port == 0 {
		return nil, fmt.Errorf("AWS_LAMBDA_RUNTIME_API is %q, want HOST:PORT", p.RuntimeAPI)
	}
	g.runtimePort = uint16(port)
	if addr, err := netip.ParseAddr(host); err == nil {
		g.runtime = addr.Unmap()
	}
	return g, nil
}

func (g *guard) allow(entry string) error {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		g.blocks = append(g.blocks, prefix)
		return nil
	}
	if addr, err := netip.ParseAddr(entry); err == nil {
		addr = embedded(addr)
		g.blocks = append(g.blocks, netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	if entry == "" || strings.ContainsAny(entry, "/:@ *") {
		return fmt.Errorf("allow %q: want a host name, an address or a CIDR block", entry)
	}
	g.hosts[hostName(entry)] = true
	return nil
}

// hostName spells a host name in one way.
func hostName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// check judges the address, IP:PORT, that host has led to.
func (g *guard) check(host, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("judge address %q: %w", address, err)
	}
	addr := embedded(at.Addr())
	if why := g.never(addr, at.Port()); why != "" {
		return &addressError{at.Addr(), why}
	}
	if why := private(addr); why != "" && !g.allowPrivate && !g.listed(host, addr) {
		return &addressError{at.Addr(), why + ", and not in the list of allowed ones"}
	}
	return nil
}

// never says why an address is never allowed; empty: it may be.
func (g *guard) never(addr netip.Addr, port uint16) string {
	switch {
	case addr.IsUnspecified():
		return "unspecified"
	case addr.IsMulticast():
		return "multicast"
	case addr.IsLinkLocalUnicast():
		return "link-local"
	case g.isRuntime(addr, port):
		return "the Lambda runtime API"
	}
	return inside(addr, neverBlocks)
}

// isRuntime reports whether the Lambda runtime API listens there. Any loopback address may lead to
// it when its own is one, or has a name.
func (g *guard) isRuntime(addr netip.Addr, port uint16) bool {
	if g.runtimePort == 0 || port != g.runtimePort {
		return false
	}
	return addr == g.runtime || addr.IsLoopback() && (!g.runtime.IsValid() || g.runtime.IsLoopback())
}

// private says why an address is private; empty: it is not.
func private(addr netip.Addr) string {
	switch {
	case addr.IsLoopback():
		return "loopback"
	case addr.IsPrivate():
		return "private"
	}
	return inside(addr, privateBlocks)
}

func inside(addr netip.Addr, blocks []block) string {
	for _, b := range blocks {
		if b.Contains(addr) {
			return b.what
		}
	}
	return ""
}

func (g *guard) listed(host string, addr netip.Addr) bool {
	if g.hosts[hostName(host)] {
		return true
	}
	for _, b := range g.blocks {
		if b.Contains(addr) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address that an IPv6 address leads to: by being one in disguise, or
// through NAT64 or 6to4. Any other address is given back without its zone.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case compatible.Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}
