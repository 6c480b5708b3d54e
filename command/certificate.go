package command

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateLook is the shortest time between two looks at the files of a certificate; connections cause them.
const certificateLook = time.Second

// certificate is a TLS certificate in two files, which are read again when they change. If the new files are wrong,
// the old certificate stays, and the log has the error.
type certificate struct {
	certFile, keyFile string
	every             time.Duration
	logger            *slog.Logger

	mu     sync.Mutex
	now    *tls.Certificate
	seen   string
	looked time.Time
}

func openCertificate(certFile, keyFile string, every time.Duration) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, every: every, logger: slog.Default()}
	c.seen = c.look()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.now, c.looked = &pair, time.Now()
	return c, nil
}

// look distinguishes two states of the files.
func (c *certificate) look() string {
	text := ""
	for _, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			text += fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}

// get is what tls.Config.GetCertificate wants.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < c.every {
		return c.now, nil
	}
	c.looked = time.Now()
	if seen := c.look(); seen != c.seen {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			c.logger.Error("the certificate has changed and cannot be read: the one before goes on", "file", c.certFile, "error", err)
			return c.now, nil
		}
		c.now, c.seen = &pair, seen
	}
	return c.now, nil
}
