package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// patience is how long a start may take.
const patience = 20 * time.Second

// start is one start of a function: the time until it asked for an event, and the most memory that it held by then.
type start struct {
	took   time.Duration
	memory int64
}

// startOf starts a function, and ends it when it asks the Runtime API for its first event.
func startOf(ctx context.Context, bootstrap string, f function) (start, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := make(chan time.Time, 1)
	api, err := serve(ctx, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			asked <- time.Now()
			<-ctx.Done()
		}
	})
	if err != nil {
		return start{}, err
	}
	defer api.Close()
	process := exec.CommandContext(ctx, bootstrap)
	process.Env = environment(f, "http://127.0.0.1:1", "AWS_LAMBDA_RUNTIME_API="+api.address)
	var said bytes.Buffer
	process.Stdout, process.Stderr = &said, &said
	began := time.Now()
	if err := process.Start(); err != nil {
		return start{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	var s start
	select {
	case at := <-asked:
		s.took = at.Sub(began)
		s.memory, err = mostMemory(process.Process.Pid)
		cancel()
		<-ended
	case why := <-ended:
		err = fmt.Errorf("it ended before it asked for an event (%v)", why)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return s, err
}

// mostMemory is the most memory that a process has held, in bytes, as Linux says.
func mostMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("the status of the process has no VmHWM")
	}
	var kilobytes int64
	_, err = fmt.Sscan(string(found[1]), &kilobytes)
	return kilobytes << 10, err
}

// server is an HTTP server on a port of its own.
type server struct {
	*http.Server
	address string
}

func serve(ctx context.Context, handle http.HandlerFunc) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{&http.Server{Handler: handle, ReadHeaderTimeout: patience}, listener.Addr().String()}
	go func() { _ = s.Serve(listener) }() // It ends with Close.
	return s, nil
}

// reported is the line in which the emulator says how long an init took.
var reported = regexp.MustCompile(`INIT REPORT\(durationMs: ([0-9.]+)\)`)

// underRIE starts a function under the emulator, invokes it once without records, beside an AWS with empty answers, and
// returns the time that the emulator reports for the init.
func underRIE(ctx context.Context, rie, bootstrap string, f function) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	aws, err := serve(ctx, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}")) // the function may be gone
	})
	if err != nil {
		return 0, err
	}
	defer aws.Close()
	var ports [2]string
	for i := range ports {
		free, err := serve(ctx, nil)
		if err != nil {
			return 0, err
		}
		ports[i] = free.address
		_ = free.Close() // the emulator listens there next
	}
	process := exec.CommandContext(ctx, rie, "--runtime-interface-emulator-address", ports[0], "--runtime-api-address", ports[1], bootstrap)
	process.Env = environment(f, "http://"+aws.address, "AWS_LAMBDA_FUNCTION_TIMEOUT=10", "HOME="+os.TempDir())
	var said output
	process.Stdout, process.Stderr = &said, &said
	if err := process.Start(); err != nil {
		return 0, err
	}
	defer func() {
		cancel()
		_ = process.Wait() // it was killed
	}()
	invoke := "http://" + ports[0] + "/2015-03-31/functions/function/invocations"
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, invoke, strings.NewReader(`{"Records":[]}`))
		if err != nil {
			return 0, err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close() // its answer is not looked at
			time.Sleep(200 * time.Millisecond)
			if found := reported.FindStringSubmatch(said.String()); found != nil {
				return time.ParseDuration(found[1] + "ms")
			}
			return 0, fmt.Errorf("it reported no init: %s", said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0, fmt.Errorf("it does not answer: %s", said.String())
}
