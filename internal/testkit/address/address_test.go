package address

import (
	"net"
	"testing"
)

// An address can be listened on, and is none that a system gives by itself.
func TestAnAddressIsFree(t *testing.T) {
	for range 200 {
		addr, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port < low || port >= high {
			t.Errorf("got %s, want a port from %d to %d", addr, low, high-1)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
