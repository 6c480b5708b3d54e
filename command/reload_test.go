package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// serving is a real makegood dev on a folder of workflow files.
type serving struct {
	t      *testing.T
	dir    string
	url    string
	stdout *bufio.Reader
	stderr *bufio.Reader
}

// startDev starts one whose workflow x has a single step that nobody does before an hour has passed.
func startDev(t *testing.T) *serving {
	t.Helper()
	return startDevWith(t, "name: x\nsteps: [{name: a, agent: deaf}]\n")
}

// startDevWith starts one with this workflow, and these flags.
func startDevWith(t *testing.T, workflow string, flags ...string) *serving {
	t.Helper()
	s := &serving{t: t, dir: t.TempDir()}
	s.write("x.yaml", workflow)
	process := exec.CommandContext(t.Context(), os.Args[0], append([]string{"dev", "--workflows", s.dir, "--addr", "127.0.0.1:0"}, flags...)...)
	process.Env = append(os.Environ(), asCommand+"=1")
	stdout, outErr := process.StdoutPipe()
	stderr, errErr := process.StderrPipe()
	if err := process.Start(); err != nil || outErr != nil || errErr != nil {
		t.Fatal(err, outErr, errErr)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	s.stdout, s.stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	first, err := s.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(first, "makegood serves "))
	return s
}

func (s *serving) write(name, text string) {
	s.t.Helper()
	// By way of another name: it looks so often here that it could see half a file twice.
	file := filepath.Join(s.dir, name)
	if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
		s.t.Fatal(err)
	}
}

// submit submits a job that does not start yet, and returns its definition.
func (s *serving) submit(id string) string {
	s.t.Helper()
	body := `{"workflow":"x","id":"` + id + `","input":1,"startAt":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	return s.definition(http.Post(s.url+"/api/jobs", "application/json", strings.NewReader(body)))
}

func (s *serving) definition(response *http.Response, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var job makegood.Job
	body, err := io.ReadAll(response.Body)
	if err != nil || json.Unmarshal(body, &job) != nil || job.Definition == "" {
		s.t.Fatalf("%s, %v: %s, want a job", response.Status, err, body)
	}
	return job.Definition
}

func TestDevReadsAChangedFileAndRunningJobsKeepTheirs(t *testing.T) {
	s := startDev(t)
	first := s.submit("before")
	s.write("x.yaml", "name: x\nsteps: [{name: a, agent: deaf}, {name: b, agent: deaf}]\n")
	waitFor(t, s.stdout, "workflow x, 2 steps, from "+filepath.Join(s.dir, "x.yaml")+": current now, for new jobs")
	second := s.submit("after")
	if first == second {
		t.Errorf("both jobs have the definition %s, want the second to have the new one", first)
	}
	if kept := s.definition(http.Get(s.url + "/api/jobs/before")); kept != first {
		t.Errorf("the job of before has %s now, want %s still", kept, first)
	}

	s.write("x.yaml", "name: x\nsteps: [{name: a, agent: daef}]\n")
	waitFor(t, s.stderr, `x.yaml:2: no agent "daef": did you mean "deaf"?`)
	waitFor(t, s.stderr, "the definitions that were current stay current")
	if still := s.submit("after-a-mistake"); still != second {
		t.Errorf("after a mistake a new job has %s, want %s still", still, second)
	}

	// Of another size than the mistake: two files that are written within a tick of the file system have one time.
	s.write("x.yaml", "name: x\nsteps: [{name: first, agent: deaf}]\n")
	waitFor(t, s.stdout, "workflow x, 1 step")
	s.write("y.yml", "name: y\nsteps: [{name: a, agent: deaf}]\n")
	waitFor(t, s.stdout, "workflow y, 1 step")
	if err := os.Remove(filepath.Join(s.dir, "y.yml")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s.stderr, "workflow y: its file is gone")
}

// A workflow whose child is in no file can begin no job, which is said before one is submitted.
func TestDevNamesTheWorkflowOfAChildThatIsInNoFile(t *testing.T) {
	s := startDevWith(t, "name: x\nsteps: [{name: a, agent: workflow, action: gone}]\n")
	waitFor(t, s.stderr, `warning: there is no workflow "gone", which does step a of workflow x, among these files`)
	s.write("y.yaml", "name: y\nsteps: [{name: b, agent: workflow, action: nowhere}]\n")
	waitFor(t, s.stderr, `warning: there is no workflow "nowhere", which does step b of workflow y, among these files`)
}

// schedule returns the cron of a schedule that is kept; empty: there is none of the name.
func (s *serving) schedule(name string) string {
	s.t.Helper()
	response, err := http.Get(s.url + "/api/schedules/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var kept makegood.Schedule
	if err := json.NewDecoder(response.Body).Decode(&kept); err != nil {
		s.t.Fatal(err)
	}
	return kept.Cron
}

func TestDevReadsAScheduleThatChangesAlone(t *testing.T) {
	const steps = "name: x\nsteps: [{name: a, agent: deaf}]\n"
	s := startDevWith(t, steps)
	first := s.submit("before")
	for _, c := range []struct{ schedules, says, cron string }{
		{"schedules: [{name: nightly, cron: \"@daily\"}]\n", "1 schedule now", "@daily"},
		{"schedules: [{name: nightly, cron: \"@weekly\"}]\n", "1 schedule now", "@weekly"},
		{"", "0 schedules now", ""},
	} {
		s.write("x.yaml", steps+c.schedules)
		waitFor(t, s.stdout, "workflow x, from "+filepath.Join(s.dir, "x.yaml")+": "+c.says)
		if got := s.schedule("nightly"); got != c.cron {
			t.Errorf("got cron %q, want %q", got, c.cron)
		}
	}
	if still := s.submit("after"); still != first {
		t.Errorf("a new job has the definition %s, want %s still", still, first)
	}
}

// A file whose schedule is another's changes nothing: neither its schedules nor its steps.
func TestDevSaysThatWhatWasCurrentStaysWhereThatIsSo(t *testing.T) {
	s := startDev(t)
	first := s.submit("before")
	s.write("y.yaml", "name: y\nsteps: [{name: a, agent: deaf}]\nschedules: [{name: nightly, cron: \"@daily\"}]\n")
	waitFor(t, s.stdout, "workflow y, 1 step")
	s.write("x.yaml", "name: x\nsteps: [{name: a, agent: deaf}, {name: b, agent: deaf}]\nschedules: [{name: nightly, cron: \"@weekly\"}]\n")
	waitFor(t, s.stderr, "the file of workflow y has it")
	waitFor(t, s.stderr, "the definitions that were current stay current")
	if still := s.submit("after"); still != first {
		t.Errorf("a new job has the definition %s, want %s still", still, first)
	}
	if got := s.schedule("nightly"); got != "@daily" {
		t.Errorf("got cron %q, want that of the file that has it", got)
	}
}

// The definition is stored, and then the store breaks: it does not say that what was current stays.
func TestDevDoesNotSayThatWhatWasCurrentStaysWhereItDoesNot(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("name: x\nsteps: [{name: a, agent: http, with: {method: GET, url: 'http://x'}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err   error
		stays bool
	}{{fmt.Errorf("%w: no room", embedded.ErrHalfDefined), false}, {errors.New("refused"), true}} {
		var stderr strings.Builder
		r := &reloader{folder: dir, stdout: io.Discard, stderr: &stderr, current: map[string]loaded{}}
		r.define = func(context.Context, *workflowfile.Compiled) error { return c.err }
		r.reload(t.Context())
		if said := stderr.String(); !strings.Contains(said, c.err.Error()) || strings.Contains(said, "stay current") != c.stays {
			t.Errorf("%v: got %q, want stays current: %v", c.err, said, c.stays)
		}
	}
}
