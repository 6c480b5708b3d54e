package httpagent

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

const ok = ""

// addresses, and why they are refused: always, or without AllowPrivate.
var addresses = []struct{ address, always, private string }{
	{"93.184.216.34", ok, ok},
	{"2606:2800:220:1::1", ok, ok},
	{"172.32.0.1", ok, ok},
	{"100.63.255.255", ok, ok},
	{"100.128.0.1", ok, ok},
	{"169.253.0.1", ok, ok},

	{"169.254.169.254", "link-local", ""},
	{"169.254.100.1", "link-local", ""},
	{"169.254.170.2", "link-local", ""},
	{"fe80::1", "link-local", ""},
	{"fe80::1%eth0", "link-local", ""},
	{"febf::1", "link-local", ""},
	{"fd00:ec2::254", "metadata", ""},
	{"fd20:ce::254", "metadata", ""},
	{"168.63.129.16", "metadata", ""},
	{"100.100.100.200", "metadata", ""},
	{"0.0.0.0", "unspecified", ""},
	{"::", "unspecified", ""},
	{"0.1.2.3", "not an address", ""},
	{"224.0.0.1", "multicast", ""},
	{"239.255.255.255", "multicast", ""},
	{"ff02::1", "multicast", ""},
	{"255.255.255.255", "broadcast", ""},

	{"127.0.0.1", ok, "loopback"},
	{"127.255.255.254", ok, "loopback"},
	{"::1", ok, "loopback"},
	{"10.0.0.1", ok, "private"},
	{"172.16.0.1", ok, "private"},
	{"172.31.255.255", ok, "private"},
	{"192.168.1.1", ok, "private"},
	{"100.64.0.1", ok, "carrier-grade"},
	{"100.127.255.255", ok, "carrier-grade"},
	{"198.18.0.1", ok, "private"},
	{"240.0.0.1", ok, "private"},
	{"fc00::1", ok, "private"},
	{"fdff::1", ok, "private"},
	{"fec0::1", ok, "site-local"},
	{"fec0::1%eth0", ok, "site-local"},
	{"64:ff9b:1::1", ok, "local NAT64"},

	// In disguise: mapped, NAT64, 6to4, compatible.
	{"::ffff:169.254.169.254", "link-local", ""},
	{"::ffff:10.0.0.1", ok, "private"},
	{"::ffff:93.184.216.34", ok, ok},
	{"64:ff9b::a9fe:a9fe", "link-local", ""},
	{"64:ff9b::7f00:1", ok, "loopback"},
	{"64:ff9b::5db8:d822", ok, ok},
	{"2002:a9fe:a9fe::1", "link-local", ""},
	{"2002:a00:1::1", ok, "private"},
	{"2002:5db8:d822::1", ok, ok},
	{"::169.254.169.254", "link-local", ""},
	{"::10.0.0.1", ok, "private"},
}

func TestAnAddressIsJudgedByWhereItLeads(t *testing.T) {
	for _, c := range addresses {
		address := netip.AddrPortFrom(netip.MustParseAddr(c.address), 80).String()
		for name, judge := range map[string]struct {
			policy Policy
			want   string
		}{
			"private allowed":     {Policy{AllowPrivate: true}, c.always},
			"private not allowed": {Policy{}, c.always + c.private},
			// No list opens what is never allowed.
			"all listed": {Policy{Allow: []string{"0.0.0.0/0", "::/0", "host"}}, c.always},
		} {
			g, err := newGuard(judge.policy)
			if err != nil {
				t.Fatal(err)
			}
			err = g.check("host", address)
			if (err == nil) != (judge.want == ok) || err != nil && !strings.Contains(err.Error(), judge.want) {
				t.Errorf("%s, %s: got %v, want %q", c.address, name, err, judge.want)
			}
		}
	}
}

func TestTheListAllowsWhatItNames(t *testing.T) {
	for _, c := range []struct {
		entry, host, address string
		want                 bool
	}{
		{"10.1.0.0/16", "a", "10.1.2.3", true},
		{"10.1.2.3/16", "a", "10.1.9.9", true},
		{"10.1.0.0/16", "a", "10.2.0.1", false},
		{"10.1.2.3", "a", "10.1.2.3", true},
		{"10.1.2.3", "a", "::ffff:10.1.2.3", true},
		{"::ffff:10.1.2.3", "a", "10.1.2.3", true},
		{"10.1.2.3", "a", "10.1.2.4", false},
		{"fd12::/16", "a", "fd12::1", true},
		{"internal.example", "internal.example", "10.1.2.3", true},
		{"Internal.Example.", "internal.example", "10.1.2.3", true},
		{"internal.example", "INTERNAL.EXAMPLE.", "10.1.2.3", true},
		{"internal.example", "x.internal.example", "10.1.2.3", false},
		{"internal.example", "internal.example", "169.254.169.254", false},
		{" localhost ", "localhost", "127.0.0.1", true},
	} {
		g, err := newGuard(Policy{Allow: []string{c.entry}})
		if err != nil {
			t.Fatal(err)
		}
		err = g.check(c.host, netip.AddrPortFrom(netip.MustParseAddr(c.address), 80).String())
		if (err == nil) != c.want {
			t.Errorf("%q, %s at %s: got %v, want allowed: %v", c.entry, c.host, c.address, err, c.want)
		}
	}
}

func TestTheRuntimeAPIIsNeverAllowed(t *testing.T) {
	for _, c := range []struct {
		runtime, address string
		want             bool
	}{
		{"127.0.0.1:9001", "127.0.0.1:9001", false},
		{"127.0.0.1:9001", "[::ffff:127.0.0.1]:9001", false},
		{"127.0.0.1:9001/env/1", "127.0.0.1:9001", false},
		{"127.0.0.1:9001", "127.0.0.2:9001", false},
		{"127.0.0.1:9001", "[::1]:9001", false},
		{"127.0.0.1:9001", "127.0.0.1:9002", true},
		{"127.0.0.1:9001", "10.0.0.1:9001", true},
		{"localhost:9001", "127.0.0.1:9001", false},
		{"10.0.0.1:9001", "10.0.0.1:9001", false},
		{"10.0.0.1:9001", "127.0.0.1:9001", true},
		{"[::1]:9001", "127.0.0.1:9001", false},
		{"", "127.0.0.1:9001", true},
	} {
		g, err := newGuard(Policy{AllowPrivate: true, Allow: []string{"127.0.0.1"}, RuntimeAPI: c.runtime})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.check("a", c.address); (err == nil) != c.want {
			t.Errorf("runtime API at %q: %s: got %v, want allowed: %v", c.runtime, c.address, err, c.want)
		}
	}
}

func TestAPolicyThatCannotBeUnderstoodIsRefused(t *testing.T) {
	for want, p := range map[string]Policy{
		`allow "http://a"`:                        {Allow: []string{"http://a"}},
		`allow "a:80"`:                            {Allow: []string{"a:80"}},
		`allow "10.0.0.0/33"`:                     {Allow: []string{"10.0.0.0/33"}},
		`allow "*.example"`:                       {Allow: []string{"*.example"}},
		`allow ""`:                                {Allow: []string{" "}},
		`AWS_LAMBDA_RUNTIME_API is "127.0.0.1"`:   {RuntimeAPI: "127.0.0.1"},
		`AWS_LAMBDA_RUNTIME_API is "a:b"`:         {RuntimeAPI: "a:b"},
		`AWS_LAMBDA_RUNTIME_API is "a:99999"`:     {RuntimeAPI: "a:99999"},
		`AWS_LAMBDA_RUNTIME_API is "127.0.0.1:0"`: {RuntimeAPI: "127.0.0.1:0"},
	} {
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
}

// With real connections, after DNS: the name is harmless, the address is not. Nobody ever knocks.
func TestARefusedAddressIsNeverConnectedTo(t *testing.T) {
	var knocks counter
	address := listen(t, func(net.Conn) { knocks.Add(1) })
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy Policy
		url    string
	}{
		{Policy{}, "http://127.0.0.1:" + port},
		{Policy{}, "http://localhost:" + port},
		{Policy{}, "http://[::ffff:127.0.0.1]:" + port},
		{Policy{}, "https://127.0.0.1:" + port},
		{Policy{AllowPrivate: true, RuntimeAPI: address}, "http://127.0.0.1:" + port},
		{Policy{AllowPrivate: true}, "http://0.0.0.0:" + port},
		{Policy{AllowPrivate: true}, "http://169.254.169.254/latest/meta-data/"},
	} {
		_, err := call(t, newAgentWith(t, c.policy), taskOf(t, fields{"url": c.url}))
		wantKind(t, err, "final no")
		if err != nil && !strings.Contains(err.Error(), "is not allowed") {
			t.Errorf("%s: got %v, want it to say that the address is not allowed", c.url, err)
		}
	}
	if got := knocks.Load(); got != 0 {
		t.Errorf("got %d connections, want none", got)
	}
}

func TestAListedAddressIsConnectedTo(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1") })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for entry, host := range map[string]string{"localhost": "localhost", "127.0.0.0/8": "127.0.0.1"} {
		got, err := call(t, newAgentWith(t, Policy{Allow: []string{entry}}), taskOf(t, fields{"url": "http://" + host + ":" + port}))
		if got != "1" || err != nil {
			t.Errorf("%s: got %s, %v, want 1", entry, got, err)
		}
	}
}

// With a proxy the address that is checked would be the proxy's.
func TestThereIsNoProxy(t *testing.T) {
	if newAgent(t).transport.(*http.Transport).Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}
