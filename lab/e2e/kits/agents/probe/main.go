// Command probe is the agent of the conformance suite, with the Go kit, at the door of an engine or the queue of a
// stack. Its twins in Python and TypeScript do the same.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing/iotest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/onhttp"
	"github.com/makegood-dev/makegood/onqueue"
)

// given is the input of all actions but echo and parsed.
type given struct {
	Message      string          `json:"message"`
	Final        bool            `json:"final"`
	NotApplied   bool            `json:"notApplied"`
	RetryAfterMs int             `json:"retryAfterMs"`
	Kind         string          `json:"kind"`
	How          string          `json:"how"`
	Ms           int             `json:"ms"`
	Times        int             `json:"times"`
	Bytes        int             `json:"bytes"`
	Progress     json.RawMessage `json:"progress"`
	Deadline     time.Time       `json:"deadline"`
	Quiet        bool            `json:"quiet"`
	Keys         bool            `json:"keys"`
	// Of is what a large output repeats; empty: x.
	Of string `json:"of"`
	// From is what a payload is written from: memory, file, once, or broken, which fails when it has given its bytes.
	From   string           `json:"from"`
	Type   string           `json:"type"`
	Report makegood.Payload `json:"report"`
	Offset int64            `json:"offset"`
	Length *int64           `json:"length"`
}

func main() {
	probe := agent.New("probe",
		agent.Do("echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		agent.Undo("unecho", unecho),
		agent.Do("info", info),
		agent.Do("parsed", func(_ context.Context, in parsed) (int, error) { return *in.Must, nil }),
		agent.Do("fail", fail),
		agent.Do("slowDown", slowDown),
		agent.Do("crash", func(context.Context, any) (any, error) { panic("it broke") }),
		agent.Do("err", err),
		agent.Do("deaf", func(_ context.Context, in given) (string, error) {
			time.Sleep(in.duration())
			return "slept", nil
		}),
		agent.Do("sleep", func(ctx context.Context, in given) (string, error) { return "slept", wait(ctx, in.duration()) }),
		agent.Do("heartbeat", heartbeat),
		agent.Do("block", func(ctx context.Context, in given) (string, error) {
			defer agent.KeepAlive(ctx)()
			time.Sleep(in.duration())
			return "blocked", nil
		}),
		agent.Do("hold", hold),
		agent.Do("report", report),
		agent.Do("later", func(_ context.Context, in given) (any, error) { return nil, agent.Wait(in.Deadline) }),
		agent.Do("large", func(_ context.Context, in given) (string, error) {
			return strings.Repeat(cmp.Or(in.Of, "x"), in.Bytes), nil
		}),
		agent.Do("press", press),
		agent.Do("pressLater", func(ctx context.Context, in given) (map[string]any, error) {
			if err := wait(ctx, in.duration()); err != nil {
				return nil, err
			}
			return press(ctx, in)
		}),
		agent.Do("inspect", inspect),
		agent.Do("passOn", func(_ context.Context, in makegood.Payload) (makegood.Payload, error) { return in, nil }),
		agent.Do("unsayable", func(context.Context, any) (chan int, error) { return make(chan int), nil }),
	)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, probe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, probe *agent.Agent) error {
	numbers := map[string]int{"CONCURRENCY": 0, "PATIENCE_MS": 0}
	for name := range numbers {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			return err
		}
		numbers[name] = n
	}
	concurrency, grace := numbers["CONCURRENCY"], time.Duration(numbers["PATIENCE_MS"])*time.Millisecond
	if url := os.Getenv("MAKEGOOD_URL"); url != "" {
		return onhttp.Run(ctx, probe, onhttp.Options{URL: url, Token: os.Getenv("MAKEGOOD_TOKEN"), Concurrency: concurrency, Grace: grace})
	}
	return onqueue.Run(ctx, probe, onqueue.Options{Concurrency: concurrency, Grace: grace})
}

// parsed is an input that must have a number.
type parsed struct {
	Must *int `json:"must"`
}

func (p *parsed) UnmarshalJSON(text []byte) error {
	type plain parsed
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return err
	}
	if p.Must == nil {
		return errors.New("must is missing")
	}
	return nil
}

// held says what hold works until, and how.
type held struct {
	Begun string `json:"begun"`
	Until string `json:"until"`
	Alive bool   `json:"alive"`
}

// hold works until there is a file, and heartbeats, or is kept alive.
func hold(ctx context.Context, in held) (string, error) {
	if err := os.WriteFile(in.Begun, nil, 0o600); err != nil {
		return "", err
	}
	does := "heartbeats"
	if in.Alive {
		does = "kept alive"
		defer agent.KeepAlive(ctx)()
	}
	for {
		if _, err := os.Stat(in.Until); err == nil {
			return does, nil
		}
		if !in.Alive {
			if err := agent.Heartbeat(ctx); err != nil {
				return "", err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func info(ctx context.Context, _ any) (map[string]any, error) {
	t := agent.TaskOf(ctx)
	return map[string]any{
		"job": t.Job, "workflow": t.Workflow, "step": t.Step, "round": t.Round, "attempt": t.Attempt, "key": t.Key,
		"completion": t.Completion, "shared": t.Shared, "traceparent": t.Traceparent,
	}, nil
}

func unecho(ctx context.Context, in given, done *json.RawMessage) error {
	if in.Quiet {
		return nil
	}
	undo := agent.TaskOf(ctx).Undo
	var told any = map[string]any{"done": done, "forwardKey": undo.ForwardKey, "outcome": undo.Outcome}
	if in.Keys {
		told = undo.Keys()
	}
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return agent.Final(errors.New(string(text)))
}

func (in given) duration() time.Duration { return time.Duration(in.Ms) * time.Millisecond }

// err fails as programs do, and as what they call does.
func err(ctx context.Context, in given) (any, error) {
	switch in.How {
	case "none":
		var none *given
		return none.Message, nil
	case "name", "deep": // Go finds the one when it compiles, and ends the process for the other
		return []int{}[len(in.Message)], nil
	case "library":
		return strings.Repeat("a", len(in.Message)-1), nil
	case "long":
		panic(strings.Repeat("ü", 2000))
	case "declined":
		return nil, errors.New("no such account")
	case "no JSON":
		return nil, json.Unmarshal([]byte("<html>"), &in)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1", nil)
	if err != nil {
		return nil, err
	}
	_, err = http.DefaultClient.Do(request) // nobody answers
	return nil, err
}

func fail(_ context.Context, in given) (any, error) {
	err := errors.New(in.Message)
	if in.Final {
		err = agent.Final(err)
	}
	if in.NotApplied {
		err = agent.NotApplied(err)
	}
	err = agent.RetryAfter(time.Duration(in.RetryAfterMs)*time.Millisecond, err)
	return nil, agent.Kind(in.Kind, err)
}

// slowDown wants no calls for a while, in the first so many attempts.
func slowDown(ctx context.Context, in given) (string, error) {
	if agent.TaskOf(ctx).Attempt > in.Times {
		return "taken", nil
	}
	return "", agent.Kind("busy", agent.SlowDown(in.duration(), errors.New(in.Message)))
}

// report reports with a heartbeat of its own, since one that comes so soon after the claim is written with the next.
func report(ctx context.Context, in given) (string, error) {
	if err := agent.Progress(ctx, in.Progress); err != nil {
		return "", err
	}
	return "reported", agent.Heartbeat(ctx)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func heartbeat(ctx context.Context, in given) (map[string]int, error) {
	failed := 0
	for range in.Times {
		if err := wait(ctx, in.duration()); err != nil {
			return nil, err
		}
		switch err := agent.Heartbeat(ctx); {
		case errors.Is(err, agent.ErrWithdrawn):
			return nil, agent.NotApplied(errors.New("withdrawn"))
		case errors.Is(err, agent.ErrOver):
			return nil, err
		case err != nil:
			failed++
		}
	}
	return map[string]int{"failed": failed}, nil
}

// lines are bytes that can be read once: those of a line, again and again.
type lines struct{ at int }

const line = "0123456789abcde\n"

func (l *lines) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = line[(l.at+i)%len(line)]
	}
	l.at += len(p)
	return len(p), nil
}

// press writes a payload, from what it is told to.
func press(ctx context.Context, in given) (map[string]any, error) {
	from := io.LimitReader(&lines{}, int64(in.Bytes))
	switch in.From {
	case "memory":
		text, err := io.ReadAll(from)
		if err != nil {
			return nil, err
		}
		from = bytes.NewReader(text)
	case "broken":
		from = io.MultiReader(from, iotest.ErrReader(errors.New("the source broke")))
	case "file":
		file, err := os.CreateTemp("", "probe")
		if err != nil {
			return nil, err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		if _, err = io.Copy(file, from); err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		if err != nil {
			return nil, err
		}
		from = file
	}
	report, err := agent.WritePayload(ctx, in.Type, from)
	return map[string]any{"report": report}, err
}

// inspect reads a payload, or a part of it, to its end.
func inspect(ctx context.Context, in given) (map[string]any, error) {
	length := int64(-1)
	if in.Length != nil {
		length = *in.Length
	}
	r, err := agent.OpenPayloadRange(ctx, in.Report, in.Offset, length)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, r)
	return map[string]any{"bytes": n, "sha256": hex.EncodeToString(hash.Sum(nil))}, errors.Join(err, r.Close())
}
