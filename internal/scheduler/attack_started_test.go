package scheduler_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A time that JSON can read, but in UTC cannot write, neither keeps a job from being saved nor from being shown.
func TestAStartedAtThatNoJSONCanSayDoesNotHideTheJob(t *testing.T) {
	for _, at := range []string{"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"} {
		w := newWorld(t)
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a}, {name: second, agent: b}]"), "j")
		again := w.handle(w.raw(fmt.Sprintf(
			`{"v":%d,"type":"StepSucceeded","job":"j","step":"first","attempt":1,"token":%q,"lockedBy":"l","startedAt":%q,"output":1}`,
			wire.Version, machine.Token(w.job("j"), "first", 1), at)))
		if again != nil {
			t.Errorf("%s: the reply comes again for ever: %v", at, again)
		}
		job := w.job("j")
		t.Log(job.Steps[0].Forward.State, job.Steps[0].Forward.StartedAt, w.s.Stats().Poisoned)
		if _, err := json.Marshal(job.Steps[0].Forward.StartedAt); err != nil {
			t.Errorf("%s: the job cannot be shown: %v", at, err)
		}
	}
}

func TestAStartAtThatNoJSONCanSayIsRefused(t *testing.T) {
	w := newWorld(t)
	w.define("name: one\nsteps: [{name: first, agent: a}]")
	again := w.handle(w.raw(`{"v":1,"type":"Submit","workflow":"one","id":"j","input":{},"startAt":"0000-01-01T00:00:00+23:59"}`))
	if again != nil || w.s.Stats().Poisoned != 1 {
		t.Errorf("got %v again, %d poisoned, want it in quarantine", again, w.s.Stats().Poisoned)
	}
}
