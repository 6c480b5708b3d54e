// Package address finds addresses for servers that a test starts as processes, and starts again. Only tests and the
// laboratory import it.
package address

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports from low to high are below those that Linux (32768), macOS and Windows (49152) give to outgoing connections and
// to listeners of port 0. So no connection of another test takes one while its server is away.
const low, high = 20_000, 32_000

// Free returns an address of this machine on which no server listens.
func Free() (string, error) {
	var err error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", low+rand.IntN(high-low))
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: 100 from %d to %d are taken, the last one: %w", low, high, err)
}
