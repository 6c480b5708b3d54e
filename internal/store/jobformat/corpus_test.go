package jobformat_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// A corpus is written once, by the release that it is of, and is never changed:
//
//	go test ./internal/store/jobformat -run TestTheCorpus -write-corpus
var writeCorpus = flag.Bool("write-corpus", false, "write the jobs of this release's corpus that are not there yet")

// corpus is where the stored jobs of this release's format are; those of earlier ones stand beside it.
const corpus = "testdata/format-1"

// corpusJobs are jobs as they stand in stores, and one with everything.
func corpusJobs() map[string]job.Job {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	born := job.Job{
		Definition: strings.Repeat("0a", 32), InputHash: strings.Repeat("0b", 32), Birth: "00112233445566778899aabbccddeeff", Round: 1,
		Desired: makegood.JobProcessed, CreatedAt: at, Deadline: at.Add(time.Hour), Transitions: 1, Secret: []byte("sixteen bytes of"),
		Input: job.Payload{Inline: []byte(`{"sku":"A1"}`), Bytes: 12},
		Steps: []job.StepState{{Name: "reserve"}, {Name: "charge"}, {Name: "ship"}},
	}
	born.Steps[0].Attempt = 1
	born.Steps[0].Forward = job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: at, Cause: "submit", LookAt: at.Add(time.Minute)}
	done := born.Clone()
	done.FinishedAt = at.Add(3 * time.Second)
	for i := range done.Steps {
		started := at.Add(time.Duration(i) * time.Second)
		done.Steps[i].Attempt = 1
		done.Steps[i].Forward = job.Activity{
			State: job.Done, Attempt: 1, Tries: 1, At: started, Cause: fmt.Sprint("reply#", i), StartedAt: started.Add(20 * time.Millisecond),
			FinishedAt: started.Add(900 * time.Millisecond), Output: job.Payload{Inline: []byte(`{"ok":true}`), Bytes: 11},
		}
	}
	done.Steps[2].Forward.Output = job.Payload{Ref: "output#ship#1#0123456789abcdef", Bytes: 70_000}
	stopped := done.Clone()
	stopped.Reason, stopped.Seq, stopped.Desired = "no stock", 1, makegood.JobUndone
	stopped.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobError, Reason: "no stock", At: at, Operator: true}}
	stopped.Steps[1].Undo = job.Activity{
		State: job.Failed, Attempt: 7, Tries: 5, FailureCount: 5, Unknown: true, At: at,
		Error:  &job.StepError{Message: "no", Applied: makegood.AppliedUnknown, RetryAfter: makegood.Second},
		Silent: &job.Claim{Attempt: 6, LockedBy: "agent:1", StartedAt: at, CompleteBy: at.Add(time.Second)},
	}
	stopped.Steps[1].Attempt = 8
	return map[string]job.Job{
		"empty": {}, "born": born, "done": done, "stopped": stopped, "waits": waiting(born), "settled": settled(stopped),
		"changes-brief": heard(done), "redefined": redefined(stopped), "everything-reasons": full(),
	}
}

// redefined is a job with another input and another definition than it had when its steps were done.
func redefined(j job.Job) job.Job {
	j = j.Clone()
	j.Needs, j.Gone = job.LevelRedefined, 3
	j.Former = []job.Payload{j.Input, {Ref: "input#0123456789abcdef", Bytes: 70_000}}
	j.Answers = []string{"AAECAwQFBgc", "CAkKCwwNDg8"}
	j.Steps[0].Forward.Former, j.Steps[1].Forward.Former = 1, 2
	j.Steps[1].Undo.Generation, j.Steps[2].Forward.Generation = 7, 1
	return j
}

// waiting is a job with a step that waits and one that was completed from outside.
func waiting(j job.Job) job.Job {
	j = j.Clone()
	at := j.CreatedAt
	j.Needs = job.LevelWaits
	j.Steps[0].Forward = job.Activity{
		State: job.Done, Attempt: 1, Tries: 1, At: at, StartedAt: at, FinishedAt: at.Add(time.Hour),
		Completion: &job.Completion{Answer: "AAECAwQFBgc", Request: "CAkKCwwNDg8", By: "anna"},
	}
	j.Steps[1].Attempt = 2
	j.Steps[1].Forward = job.Activity{
		State: job.Waiting, Attempt: 2, Tries: 2, FailureCount: 1, At: at, StartedAt: at, Cause: "charge#2", LookAt: at.Add(time.Minute),
		Wait: &job.Wait{Deadline: at.Add(48 * time.Hour), Asked: 2, Heard: 1, Tries: 3, AskAt: at.Add(time.Minute)},
	}
	j.Steps[2].Forward = job.Activity{
		Completion: &job.Completion{Answer: "AAECAwQFBgc", Early: true, Output: job.Payload{Inline: []byte(`{"ok":true}`), Bytes: 11}},
	}
	return j
}

// heard is a job of which somebody hears every change: the last step has ended, and with it the job.
func heard(j job.Job) job.Job {
	j = j.Clone()
	at := j.FinishedAt
	j.Changes = job.Changes{Seq: 7, Rev: 4, Pending: []job.Change{
		{Of: job.PlaceOfChange(1, false), From: job.ChangeState(job.Dispatched), To: job.ChangeState(job.Done), Attempt: 1, Round: 1, At: at.Add(-time.Second)},
		{Of: job.PlaceOfChange(2, false), To: job.ChangeState(job.Dispatched), Attempt: 1, Round: 1, At: at.Add(-time.Second)},
		{Of: job.PlaceOfChange(2, false), From: job.ChangeState(job.Dispatched), To: job.ChangeState(job.Done), Attempt: 1, Round: 1, At: at},
		{From: job.ChangeState(makegood.JobProcessing), To: job.ChangeState(makegood.JobProcessed), Round: 1, At: at},
	}}
	return j
}

// settled is a job whose undo was settled by hand, and a step of it that never began.
func settled(j job.Job) job.Job {
	j = j.Clone()
	at := j.CreatedAt.Add(time.Hour)
	j.Steps[1].Undo.State, j.Steps[1].Undo.FinishedAt, j.Steps[1].Undo.Error = job.Done, at, nil
	j.Steps[1].Undo.Settled = &job.Settlement{Round: 1, Answer: "AAECAwQFBgc", By: "anna", Reason: "refunded by bank transfer", At: at}
	j.Steps = append(j.Steps, job.StepState{Name: "mail", Forward: job.Activity{
		State: job.Done, FinishedAt: at, Output: job.Payload{Ref: "output#mail#0#0123456789abcdef", Bytes: 70_000},
		Settled: &job.Settlement{Round: 1, Answer: "CAkKCwwNDg8", At: at},
	}})
	return j
}

// kept is what a job keeps of a later release, which its JSON does not show.
type kept struct {
	Where, Bytes string
}

// shown is a job as the corpus has it beside its bytes.
type shown struct {
	Job  job.Job
	Kept []kept
}

func show(t testing.TB, j job.Job) []byte {
	t.Helper()
	s := shown{Job: j}
	add := func(where, raw string) {
		if raw != "" {
			s.Kept = append(s.Kept, kept{where, hex.EncodeToString([]byte(raw))})
		}
	}
	add("job", j.Kept)
	for i, a := range j.Untold {
		add(fmt.Sprint("untold ", i), a.Kept)
	}
	for i, step := range j.Steps {
		add(fmt.Sprint("step ", i), step.Kept)
		for name, a := range map[string]job.Activity{"forward": step.Forward, "undo": step.Undo} {
			add(fmt.Sprint(name, " ", i), a.Kept)
			if a.Error != nil {
				add(fmt.Sprint(name, " error ", i), a.Error.Kept)
			}
			if a.Wait != nil {
				add(fmt.Sprint(name, " wait ", i), a.Wait.Kept)
			}
			if a.Settled != nil {
				add(fmt.Sprint(name, " settled ", i), a.Settled.Kept)
			}
			if a.Completion != nil {
				add(fmt.Sprint(name, " completion ", i), a.Completion.Kept)
				if a.Completion.Error != nil {
					add(fmt.Sprint(name, " completion error ", i), a.Completion.Error.Kept)
				}
			}
		}
	}
	slices.SortFunc(s.Kept, func(a, b kept) int { return strings.Compare(a.Where, b.Where) })
	text, err := json.MarshalIndent(s, "", "  ")
	must(t, "show", err)
	return append(text, '\n')
}

// sameJSON reports whether two texts say the same: the order of the fields in memory is of no release.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	must(t, "read a job", json.Unmarshal(a, &x))
	must(t, "read a job", json.Unmarshal(b, &y))
	return reflect.DeepEqual(x, y)
}

// What an earlier release has stored is read as that release read it, and written back as it was.
func TestTheCorpusIsReadAsItWasWritten(t *testing.T) {
	if *writeCorpus {
		must(t, "make the folder", os.MkdirAll(corpus, 0o755))
		jobs := corpusJobs()
		for _, name := range slices.Sorted(maps.Keys(jobs)) {
			writeOnce(t, filepath.Join(corpus, name+".bin"), jobformat.Encode(jobs[name], jobformat.Apart{}))
			writeOnce(t, filepath.Join(corpus, name+".json"), show(t, jobs[name]))
		}
	}
	for _, file := range readCorpus(t, "testdata/format-*/*.bin") {
		data := read(t, file)
		j, err := jobformat.DecodeWhole(data)
		must(t, file, err)
		if got, want := show(t, j), read(t, strings.TrimSuffix(file, ".bin")+".json"); !sameJSON(t, got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
		again, err := jobformat.DecodeWhole(jobformat.Encode(j, jobformat.Apart{}))
		must(t, file+", again", err)
		same(t, file+", again", again, j)
	}
}

func writeOnce(t *testing.T, file string, data []byte) {
	t.Helper()
	if _, err := os.Stat(file); err == nil {
		return
	}
	must(t, "write", os.WriteFile(file, data, 0o644))
}
