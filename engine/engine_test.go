package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/engine/folder"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
)

const letter = `
name: letter
steps:
  - {name: write, agent: post}
`

// post writes letters, and refuses those to nobody.
func post() agent.Handler {
	return agent.New("post", agent.Do("write", func(_ context.Context, to string) (string, error) {
		if to == "" {
			return "", agent.Final(errors.New("no such door"))
		}
		return "Dear " + to, nil
	}))
}

// running is an engine at work.
type running struct {
	*engine.Engine
	stop  context.CancelFunc
	ended chan error
}

func run(t *testing.T, o engine.Options) *running {
	t.Helper()
	if o.Workflows == nil {
		o.Workflows = fstest.MapFS{"letters/letter.yml": {Data: []byte(letter)}}
	}
	if o.Agents == nil {
		o.Agents = []agent.Handler{post()}
	}
	o.Logger = slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	eng, err := engine.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{eng, stop, make(chan error, 1)}
	go func() { r.ended <- eng.Run(ctx) }()
	return r
}

func (r *running) close(t *testing.T) {
	t.Helper()
	r.stop()
	if err := errors.Join(<-r.ended, r.Close(), r.Close()); err != nil {
		t.Errorf("got %v, want an engine that was told to stop to end well, and to bear being closed twice", err)
	}
}

// Several engines run in one process, each on a folder of its own, and leave no goroutine behind. What one has kept,
// the next one on its folder has.
func TestSeveralEnginesLiveSideBySideAndLeaveNothing(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	dirs := []string{t.TempDir(), t.TempDir()}
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() {
			eng := run(t, engine.Options{Dir: dir})
			defer eng.close(t)
			if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "l", Input: fmt.Appendf(nil, `"%d"`, i)}); err != nil {
				t.Error(err)
			}
			job, err := eng.Wait(t.Context(), "l")
			if err != nil || job.ProcessState != makegood.JobProcessed || string(job.Steps[0].Output) != fmt.Sprintf(`"Dear %d"`, i) {
				t.Errorf("engine %d: got %s in %s, %v", i, job.Steps[0].Output, job.ProcessState, err)
			}
		})
	}
	all.Wait()
	again := run(t, engine.Options{Dir: dirs[0]})
	defer again.close(t)
	job, err := again.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "l", Input: json.RawMessage(`"0"`)})
	if err != nil || !job.Existed || job.ProcessState != makegood.JobProcessed {
		t.Errorf("again: got %+v, %v, want the job of before", job, err)
	}
}

// Whatever the source, jobs are asked for and refused in the same words: an engine, the API over it, and its folder.
func TestJobsAreTheSameWhereverTheyAre(t *testing.T) {
	dir := t.TempDir()
	eng := run(t, engine.Options{Dir: dir})
	defer eng.close(t)
	server := httptest.NewServer(http.StripPrefix("/makegood", eng.Handler()))
	defer server.Close()
	remote, err := client.New(server.URL + "/makegood")
	if err != nil {
		t.Fatal(err)
	}
	for id, to := range map[string]string{"good": `"Ada"`, "bad": `""`} {
		if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id, Input: json.RawMessage(to)}); err != nil {
			t.Fatal(err)
		}
		if _, err := eng.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	// That somebody was told of the Error is noted, and moves its key a day ahead: the last that is written.
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		bad, err := eng.Look(t.Context(), "bad")
		if err != nil || time.Now().After(until) {
			t.Fatalf("got %+v, %v, want its key a day ahead", bad, err)
		}
		if time.Until(*bad.CompleteBy) > time.Hour {
			break
		}
	}
	read, err := folder.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var want string
	for i, jobs := range []api.Reader{eng, remote, read} {
		if got := seen(t, jobs); i == 0 {
			want = got
		} else if got != want {
			t.Errorf("%T: got\n%s\nwant, as the engine says,\n%s", jobs, got, want)
		}
	}
	for _, jobs := range []api.Reader{eng, remote, read} {
		invalidLists(t, jobs)
	}
	for _, jobs := range []api.Jobs{eng, remote} {
		if _, err := jobs.Request(t.Context(), "bad", api.Request{Verb: "foo"}); !isInvalid(err) {
			t.Errorf("%T: asked for a verb that there is not: got %v", jobs, err)
		}
		if _, err := jobs.Request(t.Context(), "bad", api.Request{Verb: makegood.VerbReschedule}); !isInvalid(err) {
			t.Errorf("%T: rescheduled without a time: got %v", jobs, err)
		}
		reschedules(t, jobs)
		requestsByName(t, jobs)
		if got := refused(t, jobs); got != "mismatch invalid unregistered refused" {
			t.Errorf("%T: got %q", jobs, got)
		}
	}
}

// reschedules moves a start, there and back, and then to one that has passed: the job begins, and is moved no more.
func reschedules(t *testing.T, jobs api.Jobs) {
	t.Helper()
	id, now := fmt.Sprintf("later-%T", jobs)[len("later-*"):], time.Now()
	if _, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id, Input: json.RawMessage(`"Ada"`), StartAt: now.Add(2 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{3 * time.Hour, time.Hour, time.Hour} {
		want := domain.Instant(now.Add(ahead))
		job, err := jobs.Request(t.Context(), id, api.Request{Verb: makegood.VerbReschedule, StartAt: want})
		if err != nil || job.StartAt == nil || !job.StartAt.Equal(want) || !job.CompleteBy.Equal(want) || job.ProcessState != makegood.JobPending {
			t.Fatalf("%T: %s ahead: got %+v, %v, want its start and its key at %v", jobs, ahead, job, err, want)
		}
	}
	for _, c := range []struct {
		at   time.Time
		want string
	}{{now.Add(2 * makegood.MaxStartDelay), "the limit is 8760h0m0s"}, {now.Add(-time.Hour), ""}, {now.Add(time.Hour), "it is Processed"}} {
		_, err := jobs.Request(t.Context(), id, api.Request{Verb: makegood.VerbReschedule, StartAt: c.at})
		if refused, is := errors.AsType[*api.RefusedError](err); is != (c.want != "") || is && !strings.Contains(refused.Reason, c.want) {
			t.Errorf("%T: to %v: got %v, want it refused with %q", jobs, c.at, err, c.want)
		}
		if c.want == "" {
			if job, err := jobs.Wait(t.Context(), id); err != nil || job.ProcessState != makegood.JobProcessed {
				t.Fatalf("%T: it was to begin at once: got %+v, %v", jobs, job, err)
			}
		}
	}
}

// requestsByName pauses a job, takes that back, and asks for the pause again under the name of before: it was granted, and is
// not granted twice.
func requestsByName(t *testing.T, jobs api.Jobs) {
	t.Helper()
	id := "named-" + strings.TrimPrefix(fmt.Sprintf("%T", jobs), "*")
	if _, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id, Input: json.RawMessage(`"Ada"`), StartAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		request         api.Request
		paused, existed bool
	}{
		{api.Request{Verb: makegood.VerbPause, Name: "monday"}, true, false},
		{api.Request{Verb: makegood.VerbPause}, true, true},
		{api.Request{Verb: makegood.VerbResume, Name: "monday"}, false, false},
		{api.Request{Verb: makegood.VerbPause, Name: "monday"}, false, true},
		{api.Request{Verb: makegood.VerbPause, Name: "tuesday"}, true, false},
		{api.Request{Verb: makegood.VerbCancel}, false, false},
	} {
		job, err := jobs.Request(t.Context(), id, c.request)
		if err != nil || job.Paused != c.paused || job.Existed != c.existed {
			t.Fatalf("%T: %+v: got paused %t, existed %t, %v, want %t, %t", jobs, c.request, job.Paused, job.Existed, err, c.paused, c.existed)
		}
	}
	if _, err := jobs.Request(t.Context(), id, api.Request{Verb: makegood.VerbPause, Name: "two words"}); !isInvalid(err) {
		t.Errorf("%T: a name with a space: got %v", jobs, err)
	}
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*api.InvalidError](err)
	return is
}

// invalidLists asks for lists that cannot be, each refused in the same words.
func invalidLists(t *testing.T, jobs api.Reader) {
	t.Helper()
	for _, c := range []struct {
		filter       api.Filter
		cursor, want string
	}{
		{api.Filter{State: "foo"}, "", `list jobs: there is no state "foo"; there are [Pending Processing Processed Error Undoing Undone Cancelled] and waiting`},
		{api.Filter{State: makegood.JobError, Paused: true}, "", "list jobs: paused: want true, and no state beside it"},
		{api.Filter{}, "garbage", `list jobs: the cursor "garbage" is of no page of this list`},
	} {
		if _, err := jobs.Page(t.Context(), c.filter, c.cursor); !isInvalid(err) || err.Error() != c.want {
			t.Errorf("%T: %+v: got %v, want %s", jobs, c, err, c.want)
		}
	}
}

// A submission that says nothing of its input has null, whoever it is handed to.
func TestNoInputIsNull(t *testing.T) {
	eng := run(t, engine.Options{})
	defer eng.close(t)
	server := httptest.NewServer(eng.Handler())
	defer server.Close()
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for i, jobs := range []api.Jobs{eng, remote} {
		id := fmt.Sprint("job-", i)
		if _, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id}); err != nil {
			t.Fatalf("%T: %v", jobs, err)
		}
		job, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: id, Input: json.RawMessage("null")})
		if err != nil || !job.Existed {
			t.Errorf("%T: null again: got %+v, %v, want the same job", jobs, job, err)
		}
		if job, err = jobs.Get(t.Context(), id); err != nil || string(job.Input) != "null" {
			t.Errorf("%T: got the input %q, %v, want null", jobs, job.Input, err)
		}
	}
}

// seen is all that can be read.
func seen(t *testing.T, jobs api.Reader) string {
	t.Helper()
	good, err := jobs.Wait(t.Context(), "good")
	if err != nil {
		t.Fatalf("%T: %v", jobs, err)
	}
	_, missing := jobs.Get(t.Context(), "none")
	if !errors.Is(missing, api.ErrNotFound) {
		t.Errorf("%T: a job that is not there: got %v", jobs, missing)
	}
	page, err := jobs.Page(t.Context(), api.Filter{State: makegood.JobError}, "")
	if err != nil {
		t.Fatalf("%T: %v", jobs, err)
	}
	var listed []api.Listed
	for job, err := range jobs.List(t.Context(), api.Filter{}) {
		if err != nil {
			t.Fatalf("%T: %v", jobs, err)
		}
		listed = append(listed, job)
	}
	workflows, err := jobs.Workflows(t.Context())
	text, jsonErr := json.Marshal([]any{good, page, listed, workflows})
	if err := errors.Join(err, jsonErr); err != nil || len(page.Jobs) != 1 || len(listed) != 2 || len(workflows) != 1 {
		t.Fatalf("%T: got %s, %v", jobs, text, err)
	}
	return string(text)
}

// refused is how what cannot be granted is answered.
func refused(t *testing.T, jobs api.Jobs) string {
	t.Helper()
	var said []string
	_, err := jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "good", Input: json.RawMessage(`"Eve"`)})
	if mismatch := new(api.MismatchError); errors.As(err, &mismatch) && mismatch.Job == "good" {
		said = append(said, "mismatch")
	}
	_, err = jobs.Submit(t.Context(), makegood.Submission{Workflow: "poem", ID: "p"})
	if invalid := new(api.InvalidError); errors.As(err, &invalid) && strings.Contains(invalid.Message, "poem") {
		said = append(said, "invalid")
	}
	_, err = jobs.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "r", Input: json.RawMessage(`"Eve"`), ReplyTo: "shop"})
	if isInvalid(err) && strings.HasSuffix(err.Error(), "is not registered; none is registered") {
		said = append(said, "unregistered")
	}
	_, err = jobs.Request(t.Context(), "good", api.Request{Verb: makegood.VerbResubmit})
	if refusal := new(api.RefusedError); errors.As(err, &refusal) && refusal.Job == "good" {
		said = append(said, "refused")
	}
	return strings.Join(said, " ")
}

// An operator hears of an Error, and a listener of every change of the jobs that name it.
func TestWhoIsToBeToldIsTold(t *testing.T) {
	alerts, told := make(chan engine.Notice, 1), make(chan engine.Notice, 10)
	eng := run(t, engine.Options{
		Notify: engine.Notify{
			Operator:  func(_ context.Context, n engine.Notice) error { alerts <- n; return nil },
			Listeners: map[string]func(context.Context, engine.Notice) error{"shop": func(_ context.Context, n engine.Notice) error { told <- n; return nil }},
		},
	})
	defer eng.close(t)
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "l", Input: json.RawMessage(`""`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []chan engine.Notice{alerts, told} {
		for n := (engine.Notice{}); n.ProcessState != makegood.JobError; {
			select {
			case n = <-c:
				if n.Job != "l" || n.Workflow != "letter" {
					t.Errorf("got %+v", n)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("nobody was told of the Error")
			}
		}
	}
}

// With a webhook people are told, with where to look.
func TestPeopleAreAlerted(t *testing.T) {
	texts := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		texts <- m.Text
	}))
	defer hook.Close()
	eng := run(t, engine.Options{Notify: engine.Notify{Alerts: engine.Alerts{Webhook: hook.URL, PageURL: "https://jobs.example/", RunbookURL: "https://wiki.example/run"}}})
	defer eng.close(t)
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "letter", ID: "l", Input: json.RawMessage(`""`)}); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-texts:
		for _, want := range []string{"a job of letter stopped", "in this process", "makegood get l --addr https://jobs.example", "https://jobs.example/jobs/l", "https://wiki.example/run#stopped"} {
			if !strings.Contains(text, want) {
				t.Errorf("got %s, want %q in it", text, want)
			}
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("nobody was told of the Error")
	}
}

// What is wrong is said before anything runs, all of it, and the folder is free again.
func TestWhatCannotBeOpenedIsRefusedWhole(t *testing.T) {
	dir := t.TempDir()
	bad := fstest.MapFS{
		"a.yaml": {Data: []byte("name: a\nsteps: [{name: s, agent: nobody}]\n")},
		"b.yaml": {Data: []byte("name: B\n")},
	}
	_, err := engine.Open(t.Context(), engine.Options{Dir: dir, Workflows: bad})
	if err == nil || !strings.Contains(err.Error(), "a.yaml:2") || !strings.Contains(err.Error(), "b.yaml:1") {
		t.Errorf("got %v, want what is wrong with both files", err)
	}
	first := run(t, engine.Options{Dir: dir})
	if _, err := engine.Open(t.Context(), engine.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "process ") && !strings.Contains(err.Error(), "pid") {
		t.Errorf("a second engine on the folder: got %v, want who holds it", err)
	}
	first.close(t)
	if _, err := folder.Open(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder in which nothing was kept: got no error")
	}
}
