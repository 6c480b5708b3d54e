package machine_test

import (
	"errors"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// A completion token says by itself of which job, step, round and direction it is, and nothing else is one.
func TestACompletionTokenSaysWhatItIsFor(t *testing.T) {
	j := job.Job{ID: "trip-1", Round: 3, Secret: []byte("sixteen bytes ok")}
	for _, generation := range []int{0, 7} {
		of := j
		as := job.Activity{Generation: generation}
		of.Steps = []job.StepState{{Name: "charge", Forward: as, Undo: as}}
		for _, undo := range []bool{false, true} {
			token := machine.CompletionToken(of, "charge", undo)
			id, at, err := job.ReadCompletionToken(token)
			if want := (job.Place{Step: "charge", Undo: undo, Round: 3, Generation: generation, Token: token}); err != nil || id != "trip-1" || at != want {
				t.Errorf("got %s, %+v, %v, want trip-1, %+v", id, at, err, want)
			}
		}
	}
	if token := machine.CompletionToken(job.Job{ID: "trip-1", Round: 1}, "charge", false); token != "" {
		t.Errorf("a job without a secret: got %q, want none", token)
	}
	good := machine.CompletionToken(j, "charge", false)
	for _, text := range []string{
		"", "c", "c1", "c1.", "c1..", "1." + good[3:], good + ".x", "c01" + good[2:], "c0" + good[2:], "c-1" + good[2:], good[:10],
		"c1.dHJpcC0xAGNoYXJnZQAwAGZvcndhcmQ.AAAAAAAAAAAAAAAAAAAAAA", // round 0
		"c1.dHJpcC0xAGNoYXJnZQAxAHVw.AAAAAAAAAAAAAAAAAAAAAA",        // direction "up"
		"c2" + good[2:], // no generation
		"c1.dHJpcC0xAGNoYXJnZQAxAGZvcndhcmQANw.AAAAAAAAAAAAAAAAAAAAAA",  // a generation, where none is said
		"c2.dHJpcC0xAGNoYXJnZQAxAGZvcndhcmQAMA.AAAAAAAAAAAAAAAAAAAAAA",  // generation 0
		"c2.dHJpcC0xAGNoYXJnZQAxAGZvcndhcmQALTE.AAAAAAAAAAAAAAAAAAAAAA", // generation -1
		"c2.dHJpcC0xAGNoYXJnZQAxAGZvcndhcmQAMDc.AAAAAAAAAAAAAAAAAAAAAA", // generation 07
	} {
		if _, _, err := job.ReadCompletionToken(text); !errors.Is(err, job.ErrCompletionToken) {
			t.Errorf("%q: got %v, want that it is none", text, err)
		}
	}
	if _, _, err := job.ReadCompletionToken("c3.anything"); !errors.Is(err, job.ErrLaterCompletionToken) {
		t.Errorf("of a later scheme: got %v", err)
	}
}

// A token that the release before has made is good, of a step that is as it was, and is what this one makes: that release reads it.
func TestACompletionTokenOfTheReleaseBeforeIsGood(t *testing.T) {
	const before = "c1.dHJpcC0xAGNoYXJnZQAzAGZvcndhcmQ.NLT7lmYch5RArJbhU03zlg"
	j := job.Job{ID: "trip-1", Round: 3, Secret: []byte("sixteen bytes ok"), Steps: []job.StepState{{Name: "charge"}}}
	if got := machine.CompletionToken(j, "charge", false); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
	id, at, err := job.ReadCompletionToken(before)
	if err != nil || id != "trip-1" || !machine.GenuineCompletion(j, at) {
		t.Errorf("got %s, %+v, %v, want it genuine", id, at, err)
	}
}

// The token of an attempt completes nothing, and a completion token replies to nothing: they are made apart.
func TestTokensAreForOneThing(t *testing.T) {
	j := job.Job{ID: "j", Round: 1, Secret: []byte("sixteen bytes ok")}
	token := machine.CompletionToken(j, "charge", false)
	if machine.Genuine(j, job.Reply{Step: "charge", Attempt: 1, Token: token}) {
		t.Error("a completion token counts as that of an attempt")
	}
	if _, _, err := job.ReadCompletionToken(machine.Token(j, "charge", 1)); err == nil {
		t.Error("the token of an attempt counts as a completion token")
	}
	seen := map[string]string{}
	for _, other := range []struct {
		what string
		job  job.Job
		step string
		undo bool
	}{
		{"forward", j, "charge", false},
		{"undo", j, "charge", true},
		{"another step", j, "ship", false},
		{"another round", job.Job{ID: "j", Round: 2, Secret: j.Secret}, "charge", false},
		{"another job", job.Job{ID: "k", Round: 1, Secret: j.Secret}, "charge", false},
		{"another secret", job.Job{ID: "j", Round: 1, Secret: []byte("sixteen bytes no")}, "charge", false},
	} {
		token := machine.CompletionToken(other.job, other.step, other.undo)
		mac := token[len(token)-22:]
		if same, ok := seen[mac]; ok {
			t.Errorf("%s and %s have the same code", other.what, same)
		}
		seen[mac] = other.what
	}
}
