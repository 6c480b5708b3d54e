package command

import (
	"database/sql"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// idle returns an engine on a folder that does not run, so that nobody but the test puts anything back.
func idle(t *testing.T, dir string, outside ...embedded.Outside) *embedded.Engine {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Agents: []agent.Handler{deaf{}}, Outside: outside})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// astray returns a folder with jobs, one of which, lost, has lost its key.
func astray(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	engine := idle(t, dir)
	c, err := workflowfile.Parse("x.yaml", []byte("name: x\nsteps: [{name: a, agent: deaf}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Define(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"lost", "sound"} {
		_, _, err := engine.Submit(t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: []byte("1"), StartAt: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, embedded.DataFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE jobs SET complete_by = NULL WHERE id = 'lost'`); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What an audit finds is shown, of a folder and of a process, and put back when it is asked to.
func TestAnAuditFindsAJobThatTheIndexLostAndPutsItBack(t *testing.T) {
	dir := astray(t)
	const found = "lost  Pending  unfinished, and not in the index\n2 jobs looked at, 1 found astray, 0 put back\n"
	if code, out, _ := ask(t, "audit", "--data", dir); code != codeOtherwise || out != found {
		t.Errorf("of a folder: got %d and\n%swant %d and\n%s", code, out, codeOtherwise, found)
	}
	engine := idle(t, dir)
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts())}))
	t.Cleanup(server.Close)
	for _, step := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{}, codeOtherwise, found},
		{[]string{"--mend"}, codeOtherwise, "lost  Pending  unfinished, and not in the index  put back\n2 jobs looked at, 1 found astray, 1 put back\n"},
		{[]string{"--mend"}, 0, "2 jobs looked at, 0 found astray, 0 put back\n"},
		{[]string{"--json"}, 0, `{"audited":2,"strays":[]}` + "\n"},
	} {
		code, out, stderr := ask(t, append([]string{"audit", "--addr", server.URL}, step.args...)...)
		if code != step.code || out != step.out {
			t.Errorf("%v: got %d and\n%s%swant %d and\n%s", step.args, code, out, stderr, step.code, step.out)
		}
	}
	if job, err := engine.Job(t.Context(), "lost"); err != nil || !job.CompleteBy.Equal(job.StartAt) {
		t.Errorf("its key is %v, %v, want its start, %v", job.CompleteBy, err, job.StartAt)
	}
}

func TestAnAuditInJSONNamesWhatItFound(t *testing.T) {
	code, out, _ := ask(t, "audit", "--json", "--data", astray(t))
	var got audited
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != codeOtherwise || got.Audited != 2 || len(got.Strays) != 1 ||
		got.Strays[0].Job != "lost" || got.Strays[0].Mended != nil || !strings.Contains(got.Strays[0].Why, "not in the index") {
		t.Errorf("got %d, %s, %v", code, out, err)
	}
}

func TestAnAuditThatCannotBeMadeSaysWhy(t *testing.T) {
	for want, args := range map[string][]string{
		"is --data the folder": {"--data", t.TempDir()},
		"[mend data]":          {"--data", astray(t), "--mend"},
	} {
		if code, _, stderr := ask(t, append([]string{"audit"}, args...)...); code != codeUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: got %d, %s, want %d, saying %q", args, code, stderr, codeUsage, want)
		}
	}
}
