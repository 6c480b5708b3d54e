package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"
)

// The addresses of Restate's server, by default, and of the service that it calls.
const (
	restateIngress = "http://127.0.0.1:8080"
	restateAdmin   = "http://127.0.0.1:9070"
	restateService = "127.0.0.1:9080"
)

// Job is the service of Restate: its steps are journaled where it runs, or are calls of another handler.
type Job struct{}

func (Job) Run(ctx restate.Context, in input) (string, error) {
	for range in.Steps {
		if _, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return step() }); err != nil {
			return "", err
		}
	}
	return output, nil
}

func (Job) Calls(ctx restate.Context, in input) (string, error) {
	for range in.Steps {
		if _, err := restate.Service[string](ctx, "Job", "Step").Request(in); err != nil {
			return "", err
		}
	}
	return output, nil
}

func (Job) Step(restate.Context, input) (string, error) { return step() }

type restateEngine struct {
	server *exec.Cmd
	stop   context.CancelFunc
	jobs   ingress.Requester[input, string]
}

func openRestateRun(ctx context.Context, p place) (engine, error) { return openRestate(ctx, p, "Run") }

func openRestateCalls(ctx context.Context, p place) (engine, error) {
	return openRestate(ctx, p, "Calls")
}

func openRestate(ctx context.Context, p place, handler string) (engine, error) {
	program := filepath.Join(p.packages, restateServer, "bin/restate-server")
	e := &restateEngine{server: exec.Command(program, "--base-dir", p.dir, "--bind-ip", "127.0.0.1", "--no-logo", "--log-filter", "error,octocrab=off")}
	e.server.Env = append(os.Environ(), "RESTATE_DISABLE_TELEMETRY=true", "RESTATE_LISTEN_MODE=tcp")
	e.server.Stderr = os.Stderr
	if err := e.server.Start(); err != nil {
		return nil, err
	}
	serve, stop := context.WithCancel(ctx)
	e.stop = stop
	go func() {
		bound := server.NewRestate().WithLogger(slog.DiscardHandler, true).Bind(restate.Reflect(Job{}))
		if err := bound.Start(serve, restateService); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := registered(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	// One connection for each request that is under way would be a limit of the client's own.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 4096
	client := ingress.NewClient(restateIngress, ingress.WithHttpClient(&http.Client{Transport: transport}))
	e.jobs = ingress.Service[input, string](client, "Job", handler)
	return e, nil
}

// registered waits for the server, and tells it of the service.
func registered(ctx context.Context) error {
	deadline := time.Now().Add(time.Minute)
	for {
		answer, err := http.Post(restateAdmin+"/deployments", "application/json", strings.NewReader(`{"uri":"http://`+restateService+`"}`))
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode < 300 {
				return nil
			}
			err = fmt.Errorf("%s: %s", answer.Status, text)
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("register the service: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (e *restateEngine) Submit(ctx context.Context, _, steps int) (func() error, error) {
	sent, err := e.jobs.Send(ctx, input{"a-17", 3, steps})
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := sent.Attach(ctx)
		return err
	}, nil
}

func (e *restateEngine) Close() error {
	e.stop()
	if err := e.server.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_ = e.server.Wait() // It ends by a signal.
	return nil
}
