//go:build sam

package sam_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// killed is the order whose first reservation hangs until its process is killed.
const killed = "killed"

// A hundred orders go through the functions as SAM built and deployed them. The process that works on one of them
// is killed: nobody says anything of that, and only a sweep can find it.
func TestOrdersGoThroughADeployedStack(t *testing.T) {
	w := open(t)
	w.firstJobs()
	w.payloads()
	w.page()
	began := time.Now()
	w.submit(append(names("first", 100), killed)...)
	w.killWhoWorksOn(killed)
	died := time.Now()
	job := w.wait("at its end", []string{killed}, makegood.Job.AtEnd)[killed]
	w.recovered(job, died)
	w.ends()
	t.Logf("the first %d orders took %.0f s", len(w.orders), time.Since(began).Seconds())
	w.sweptBySchedule()

	// Another version of the agents is deployed while orders are under way.
	w.submit(names("before", 50)...)
	w.wait("under way", []string{"before-049"}, func(j makegood.Job) bool { return j.ProcessState != makegood.JobPending })
	changed := w.changedAgents()
	w.deploy(map[string][]byte{"workflows/order/agents.go": changed})
	w.submit(names("after", 50)...)
	w.ends()
	w.changedOnlyAfter()
}

func names(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return ids
}

// killWhoWorksOn waits until the shop has an order's reservation before it, and kills every process of the
// function that asked for it.
func (w *world) killWhoWorksOn(id string) {
	w.t.Helper()
	key := id + "/reserve/1"
	for deadline := time.Now().Add(3 * time.Minute); len(w.shop.Ledger().Requests[key]) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, function := range []string{"submitDoor", "Scheduler", "inventoryAgent"} {
				log, err := w.deployed.Log(w.t.Context(), function)
				w.t.Logf("%s, %v:\n%.6000s", function, err, log)
			}
			w.t.Fatalf("nobody has asked the shop to reserve for order %s", id)
		}
	}
	pids := processes(w.t, stackName+"-agent-inventory")
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			w.t.Fatal(err)
		}
	}
	if len(pids) == 0 {
		w.t.Fatalf("the shop was asked for order %s, and no process of its agent runs", id)
	}
	w.t.Logf("killed %d processes of the inventory function", len(pids))
}

// processes are those that run as a function, by what Lambda puts into their environment.
func processes(t *testing.T, function string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended, or is another's.
		}
		if !bytes.Contains(append([]byte{0}, environment...), []byte("\x00AWS_LAMBDA_FUNCTION_NAME="+function+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// recovered wants the killed attempt to have been noticed by its silence, and made again.
func (w *world) recovered(job makegood.Job, died time.Time) {
	w.t.Helper()
	reserve := job.Steps[0]
	if reserve.Attempt < 2 || reserve.FailureCount < 1 {
		w.t.Fatalf("order %s: its reservation is %+v, want a second attempt, and a failure", job.ID, reserve.Activity)
	}
	w.t.Logf("order %s is %s %.0f s after its agent was killed, in attempt %d", job.ID, job.ProcessState, job.FinishedAt.Sub(died).Seconds(), reserve.Attempt)
}

// sweptBySchedule wants the Supervisor's log to say that it was started, by nobody but the schedule.
func (w *world) sweptBySchedule() {
	w.t.Helper()
	log, err := w.deployed.Log(w.t.Context(), "Supervisor")
	if err != nil {
		w.t.Fatal(err)
	}
	sweeps, found := strings.Count(log, `"Name": "Swept"`), regexp.MustCompile(`"Overdue": [1-9]`).MatchString(log)
	if sweeps == 0 || !found {
		w.t.Errorf("by its log the Supervisor swept %d times, and found something overdue: %t\n%s", sweeps, found, log)
	}
	w.t.Logf("by its log the Supervisor swept %d times", sweeps)
}

// changedAgents is the agents' source, in a version whose answers are distinguished.
func (w *world) changedAgents() []byte {
	w.t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "workflows/order/agents.go"))
	if err != nil {
		w.t.Fatal(err)
	}
	changed := bytes.Replace(source, []byte(`json:"action"`), []byte(`json:"changed"`), 1)
	if bytes.Equal(changed, source) {
		w.t.Fatal("workflows/order/agents.go has no answer to change")
	}
	return changed
}

// changedOnlyAfter wants the answers of the agents that were deployed in orders submitted after that, and only of
// those that were there in orders that had ended before.
func (w *world) changedOnlyAfter() {
	w.t.Helper()
	for _, c := range []struct {
		prefix string
		n      int
		field  string
	}{{"first", 100, `"action"`}, {"after", 50, `"changed"`}} {
		for _, id := range names(c.prefix, c.n) {
			job, err := w.jobs.Get(w.t.Context(), id)
			if err != nil {
				w.t.Fatal(err)
			}
			if out := job.Steps[0].Output; job.ProcessState == makegood.JobProcessed && !bytes.Contains(out, []byte(c.field)) {
				w.t.Errorf("order %s: the output of its reservation is %s, want one with %s", id, out, c.field)
			}
		}
	}
}
