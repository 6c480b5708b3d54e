package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/sqlitefence"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/onhttp"
)

// What the teller says.
const (
	saysHung    = "hung"
	saysRefused = "refused"
	saysWritten = "written"
)

// ends are how the jobs of zombies end, by their workflows.
var ends = []struct {
	workflow string
	end      makegood.ProcessState
	lines    int
}{{"again", makegood.JobProcessed, 1}, {"undone", makegood.JobUndone, 0}, {"stopped", makegood.JobError, 0}}

// tell is the process of the teller: its first attempt of each job hangs, regardless of its context, until a line
// comes in, and then it writes.
func tell(ctx context.Context, dir, url string, in io.Reader, out io.Writer) error {
	l, err := openLedger(dir)
	if err != nil {
		return err
	}
	defer func() { _ = l.db.Close() }()
	awake := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(in).ReadString('\n') // The process that would wake it is gone, or has.
		close(awake)
	}()
	book := func(ctx context.Context, what line) (line, error) {
		if agent.TaskOf(ctx).Attempt > 1 {
			return l.book(ctx, what)
		}
		fmt.Fprintln(out, saysHung)
		<-awake
		done, err := l.book(context.WithoutCancel(ctx), what)
		switch {
		case errors.Is(err, sqlitefence.ErrLost):
			fmt.Fprintln(out, saysRefused)
		case err == nil:
			fmt.Fprintln(out, saysWritten)
		default:
			fmt.Fprintln(out, err)
		}
		return done, err
	}
	return onhttp.Run(ctx, agent.New("teller", agent.Do("book", book).Undo("cancel", l.cancel)), onhttp.Options{URL: url, Concurrency: 100, Logger: slog.New(slog.DiscardHandler)})
}

// wakeZombies has attempts hang until they were given up, and their jobs have ended without them; then it wakes them,
// and returns how many were refused.
func wakeZombies(ctx context.Context, dir string, zombies int) (refused int, err error) {
	err = running(ctx, dir, func(ctx context.Context, eng *engine.Engine, l *ledger) error {
		t, err := startTeller(ctx, dir, eng)
		if err != nil {
			return err
		}
		defer t.stop()
		for n := range zombies {
			input, err := json.Marshal(line{Account: "z", Cents: 1})
			if err != nil {
				return err
			}
			if _, err := eng.Submit(ctx, makegood.Submission{Workflow: ends[n%len(ends)].workflow, ID: fmt.Sprint("z-", n), Input: input}); err != nil {
				return err
			}
		}
		if _, err := t.hears(ctx, zombies, saysHung); err != nil {
			return err
		}
		want := 0
		for n := range zombies {
			if err := given(ctx, eng, n); err != nil {
				return err
			}
			want += ends[n%len(ends)].lines
		}
		fmt.Fprintln(t.in, "wake")
		if refused, err = t.hears(ctx, zombies, saysRefused); err != nil {
			return err
		}
		var lines int
		if err := l.db.QueryRowContext(ctx, `SELECT count(*) FROM ledger WHERE account = 'z'`).Scan(&lines); err != nil || lines != want {
			return errors.Join(err, fmt.Errorf("%d lines of jobs whose first attempt hung, want %d", lines, want))
		}
		return nil
	})
	return refused, err
}

// given waits until a job has ended without its first attempt.
func given(ctx context.Context, eng *engine.Engine, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := eng.Wait(ctx, fmt.Sprint("z-", n))
	if want := ends[n%len(ends)].end; err == nil && job.ProcessState != want {
		err = fmt.Errorf("job %s is %s, want %s", job.ID, job.ProcessState, want)
	}
	return err
}

// teller is the process in which attempts hang.
type teller struct {
	process *exec.Cmd
	server  *http.Server
	in      io.WriteCloser
	said    chan string
}

func startTeller(ctx context.Context, dir string, eng *engine.Engine) (*teller, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &teller{server: &http.Server{Handler: eng.AgentHandler(), ReadHeaderTimeout: time.Minute}, said: make(chan string, 1)}
	go func() { _ = t.server.Serve(listener) }() // It ends when it is closed.
	program, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, t.server.Close())
	}
	t.process = exec.CommandContext(ctx, program, asTeller, dir, "http://"+listener.Addr().String())
	out, err := t.process.StdoutPipe()
	if err == nil {
		t.in, err = t.process.StdinPipe()
	}
	if err == nil {
		err = t.process.Start()
	}
	if err != nil {
		return nil, errors.Join(err, t.server.Close())
	}
	go func() {
		defer close(t.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.said <- lines.Text()
		}
	}()
	return t, nil
}

// hears waits until the teller has sent so many lines, and returns how many said what; any other is an error.
func (t *teller) hears(ctx context.Context, times int, what string) (heard int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range times {
		select {
		case said, more := <-t.said:
			if !more || strings.TrimSpace(said) != what {
				return heard, fmt.Errorf("the teller said %q, want %q", said, what)
			}
			heard++
		case <-ctx.Done():
			return heard, fmt.Errorf("the teller said %q %d times, want %d: %w", what, heard, times, ctx.Err())
		}
	}
	return heard, nil
}

// stop kills the teller.
func (t *teller) stop() {
	_ = t.process.Process.Kill() // It may be gone.
	go func() {
		for range t.said {
		}
	}()
	_ = t.process.Wait()
	_ = t.server.Close()
}
