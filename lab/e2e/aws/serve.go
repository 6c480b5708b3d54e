package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/address"
)

const (
	// startLimit is how long a stand-in may take until it answers.
	startLimit = 5 * time.Minute
	// stopLimit is how long it may take to go when its standard input has ended.
	stopLimit = 5 * time.Second
)

// install puts a product into its folder, unless it is there as this program would make it.
func install(ctx context.Context, p product) error {
	for program, debian := range p.needs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("there is no %s here (apt-get install %s)", program, debian)
		}
	}
	recipe, err := p.recipe()
	if err != nil {
		return err
	}
	// Written last: an installation that was cut off is made again.
	done := filepath.Join(p.folder(), "installed")
	if have, err := os.ReadFile(done); err == nil && bytes.Equal(have, recipe) {
		return nil
	}
	fmt.Fprintf(os.Stderr, "== installing %s into %s\n", p, p.folder())
	if err := os.RemoveAll(p.folder()); err != nil {
		return err
	}
	if err := os.MkdirAll(p.folder(), 0o755); err != nil {
		return err
	}
	for _, name := range p.files {
		body, err := files.ReadFile("install/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.folder(), name), body, 0o644); err != nil {
			return err
		}
	}
	for _, step := range p.steps {
		command := exec.CommandContext(ctx, step[0], step[1:]...)
		command.Dir = p.folder()
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("install: %s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return os.WriteFile(done, recipe, 0o644)
}

// recipe is all that decides what an installation is made of.
func (p product) recipe() ([]byte, error) {
	recipe := fmt.Appendln(nil, p, p.steps)
	for _, name := range p.files {
		body, err := files.ReadFile("install/" + name)
		if err != nil {
			return nil, err
		}
		recipe = append(recipe, body...)
	}
	return recipe, nil
}

// server is a stand-in that runs.
type server struct {
	endpoint string
	process  *exec.Cmd
	input    io.Closer
	ended    chan struct{}
}

// start installs a product if it must, starts it on a free port of loopback, and waits until it
// answers.
func start(ctx context.Context, p product) (*server, error) {
	if err := install(ctx, p); err != nil {
		return nil, err
	}
	addr, err := address.Free()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	command, environment := p.serve(port)
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Dir = p.folder()
	process.Env = append(os.Environ(), environment...)
	process.WaitDelay = stopLimit
	log, err := os.Create(filepath.Join(p.folder(), "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process.Stdout, process.Stderr = log, log
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s := &server{endpoint: "http://127.0.0.1:" + port, process: process, input: input, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // How it ended is in its log.
		close(s.ended)
	}()
	if err := errors.Join(s.ready(ctx), loopbackOnly(ctx, port)); err != nil {
		s.stop()
		return nil, fmt.Errorf("%w; its log is %s", err, log.Name())
	}
	return s, nil
}

// ready waits until the server answers a request, whatever it says.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			return response.Body.Close()
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return errors.New("it ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", ctx.Err())
		}
	}
}

// loopbackOnly fails when the port can be reached from other machines.
func loopbackOnly(ctx context.Context, port string) error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.IsLinkLocalUnicast() {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(network.IP.String(), port)); err == nil {
			return errors.Join(fmt.Errorf("it answers at %s, which is not loopback", conn.RemoteAddr()), conn.Close())
		}
	}
	return nil
}

// stop ends the server and waits until it is gone.
func (s *server) stop() {
	_ = s.input.Close() // The process is killed if this does not reach it.
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		_ = s.process.Process.Kill() // It has ended, or it ends now.
		<-s.ended
	}
}
