package onhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/limits"
)

// line is an engine without a connection, so that its time may be virtual.
type line func(*http.Request) (*http.Response, error)

func (l line) RoundTrip(r *http.Request) (*http.Response, error) { return l(r) }

func answers(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// hangs answers nothing for as long as is waited.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// doorAt is a door at the end of a line.
func doorAt(t *testing.T, o Options, l line) *door {
	t.Helper()
	o.URL, o.Logger = "http://engine/below/", quiet()
	with, err := working{o, doing(nil)}.complete()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDoor(with)
	if err != nil {
		t.Fatal(err)
	}
	d.http.Transport = l
	return d
}

// crane is a process in virtual time, and the engine that it asks for tasks: what that answers to each question is scripted.
type crane struct {
	t       *testing.T
	options working
	// answer is what becomes of a question for tasks; it says how many are given.
	answer func(r *http.Request, nth int) (given int, answer *http.Response, err error)

	mu    sync.Mutex
	asked []agentdoor.TasksAsked
	at    []time.Time
}

func (c *crane) line(r *http.Request) (*http.Response, error) {
	if path.Base(r.URL.Path) != "tasks" {
		return answers(http.StatusOK, `{"status": "applied"}`)
	}
	var asked agentdoor.TasksAsked
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	c.asked, c.at = append(c.asked, asked), append(c.at, time.Now())
	nth := len(c.asked)
	c.mu.Unlock()
	given, answer, err := c.answer(r, nth)
	if answer != nil || err != nil {
		return answer, err
	}
	var body bytes.Buffer
	gives(c.t, &body, 3_600_000, slices.Repeat([]makegood.Task{taskOf("crane")}, given)...)
	return answers(http.StatusOK, body.String())
}

// run runs the process until ctx ends and it returns.
func (c *crane) run(ctx context.Context) error {
	d := doorAt(c.t, c.options.Options, c.line)
	o, err := c.options.complete()
	if err != nil {
		return err
	}
	o.Logger = quiet()
	return newTaker(d, o).run(ctx)
}

func (c *crane) most() (most []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.asked {
		most = append(most, a.Max)
	}
	return most
}

// So many tasks are asked for as could begin, a batch at most; what an attempt ends with makes room for the next.
func TestNothingIsTakenThatCouldNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan struct{})
		c := &crane{t: t, options: working{Options: Options{Concurrency: 12}, Agent: doing(func(context.Context) (json.RawMessage, error) {
			<-end
			return nil, nil
		})}}
		c.answer = func(r *http.Request, nth int) (int, *http.Response, error) {
			if nth <= 4 {
				return []int{7, 0, 5, 1}[nth-1], nil, nil
			}
			if ctx.Err() != nil {
				return 0, nil, nil
			}
			answer, err := hangs(r)
			return 0, answer, err
		}
		ended := make(chan error, 1)
		go func() { ended <- c.run(ctx) }()
		look := func(want ...int) {
			t.Helper()
			synctest.Wait()
			if got := c.most(); !slices.Equal(got, want) {
				t.Errorf("it asked for %v tasks, want %v", got, want)
			}
		}
		look(10, 5, 5)
		end <- struct{}{}
		look(10, 5, 5, 1)
		end <- struct{}{}
		look(10, 5, 5, 1, 1)
		cancel()
		look(10, 5, 5, 1, 1, 1)
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A question that is not answered is asked again under its name, after pauses that double from 0.1 to 5 seconds, of which each
// is drawn from its second half; the next question has another name.
func TestAQuestionIsAskedAgainUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failures = 12
		ctx, cancel := context.WithCancel(t.Context())
		c := &crane{t: t, options: working{Options: Options{Instance: "crane-1"}, Agent: doing(nil)}}
		c.answer = func(_ *http.Request, nth int) (int, *http.Response, error) {
			if nth <= failures {
				answer, err := answers(http.StatusServiceUnavailable, "")
				return 0, answer, err
			}
			if nth == failures+2 {
				cancel()
			}
			return 0, nil, nil
		}
		if err := c.run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(c.asked) != failures+2 {
			t.Fatalf("it asked %d times, want %d", len(c.asked), failures+2)
		}
		wait := 100 * time.Millisecond
		for i, asked := range c.asked[:failures+1] {
			if want := (agentdoor.TasksAsked{Instance: "crane-1", Max: limits.MaxBatch, Wait: int(limits.MaxTaskWait.Seconds()), Request: c.asked[0].Request}); asked != want {
				t.Errorf("question %d was %+v, want %+v", i+1, asked, want)
			}
			if i == 0 {
				continue
			}
			if paused := c.at[i].Sub(c.at[i-1]); paused < wait/2 || paused >= wait {
				t.Errorf("pause %d was %v, want one from %v to %v", i, paused, wait/2, wait)
			}
			wait = min(2*wait, 5*time.Second)
		}
		if c.asked[failures+1].Request == c.asked[0].Request {
			t.Error("another question has the name of the one that was answered")
		}
	})
}

// What was on its way when the process is to stop is asked for once more, without waiting, and done.
func TestWhatWasOnItsWayIsAskedForAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := 0
		c := &crane{t: t, options: working{Agent: doing(func(context.Context) (json.RawMessage, error) {
			done++
			return nil, nil
		})}}
		c.answer = func(r *http.Request, nth int) (int, *http.Response, error) {
			if nth == 1 {
				answer, err := hangs(r)
				return 0, answer, err
			}
			return 1, nil, nil
		}
		if err := c.run(ctx); err != nil || done != 1 || len(c.asked) != 2 {
			t.Fatalf("got %v, %d done after %d questions, want one after two", err, done, len(c.asked))
		}
		first, last := c.asked[0], c.asked[1]
		if first.Wait = 0; last != first {
			t.Errorf("the last question was %+v, want %+v", last, first)
		}
	})
}

// What a process waits for once it is to stop: for what runs, as long as the grace time is, and then until it has been told; for
// the last answer five seconds, and no longer than that either. Only attempts that are cut off are an error.
func TestHowLongStoppingTakes(t *testing.T) {
	const stopped = time.Minute
	for name, c := range map[string]struct {
		// takes is how long an attempt goes on after the process is to stop; 0: it has ended before. Told says how long it goes on
		// once it is told to stop; 0: it does not listen.
		takes, told, grace time.Duration
		hangs              bool
		want               time.Duration
		err                error
	}{
		"nothing runs":                                  {want: 0},
		"an attempt that ends in time":                  {takes: 10 * time.Second, want: 10 * time.Second},
		"an attempt that ends in time, of a long grace": {takes: 50 * time.Minute, grace: time.Hour, want: 50 * time.Minute},
		"an attempt that is cut off":                    {takes: time.Hour, told: 2 * time.Second, want: 32 * time.Second, err: agent.ErrCutOff},
		"one that is cut off sooner":                    {takes: time.Hour, told: 2 * time.Second, grace: time.Second, want: 3 * time.Second, err: agent.ErrCutOff},
		"an engine that hangs":                          {hangs: true, want: 5 * time.Second},
		"an engine that hangs, and a short grace":       {hangs: true, grace: time.Second, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), stopped)
				defer cancel()
				until := time.Now().Add(stopped + c.takes)
				p := &crane{t: t, options: working{Options: Options{Grace: c.grace}, Agent: doing(func(ctx context.Context) (json.RawMessage, error) {
					if c.takes == 0 {
						return nil, nil
					}
					select {
					case <-time.After(time.Until(until)):
					case <-ctx.Done():
						if !errors.Is(context.Cause(ctx), agentrun.ErrStopped) {
							t.Errorf("it was told to stop with %v, want %v", context.Cause(ctx), agentrun.ErrStopped)
						}
						time.Sleep(c.told)
					}
					return nil, nil
				})}}
				p.answer = func(r *http.Request, nth int) (int, *http.Response, error) {
					if nth == 1 {
						return 1, nil, nil
					}
					if ctx.Err() == nil || c.hangs {
						answer, err := hangs(r)
						return 0, answer, err
					}
					return 0, nil, nil
				}
				err := p.run(ctx)
				if took := time.Until(until.Add(-c.takes)); -took != c.want || !errors.Is(err, c.err) {
					t.Errorf("it stopped after %v with %v, want %v with %v", -took, err, c.want, c.err)
				}
			})
		})
	}
}

// What is not said of a process is as the documentation says, and the limits are among what may be said.
func TestWhatIsNotSaidOfAProcess(t *testing.T) {
	t.Setenv("MAKEGOOD_SECRET_ROPE", "hemp")
	o, err := working{Agent: doing(nil)}.complete()
	if err != nil || o.Concurrency != 64 || o.Grace != 30*time.Second || !regexp.MustCompile("^go-[A-Z2-7]{26}$").MatchString(o.Instance) || o.Logger == nil {
		t.Errorf("got %+v, %v", o, err)
	}
	if value, err := o.Secrets(t.Context(), "rope"); err != nil || value != "hemp" {
		t.Errorf("got the secret %q, %v, want that of the environment", value, err)
	}
	for _, options := range []Options{
		{Concurrency: 1, Grace: 1, Instance: "a"},
		{Concurrency: 1000, Grace: 720 * time.Hour, Instance: strings.Repeat("a", 128), Logger: quiet(), Secrets: o.Secrets},
	} {
		said := working{options, doing(nil)}
		got, err := said.complete()
		said.Logger, said.Secrets, said.Agent, got.Secrets = got.Logger, nil, got.Agent, nil
		if err != nil || !reflect.DeepEqual(got, said) {
			t.Errorf("got %+v, %v, want %+v", got, err, said)
		}
	}
}
