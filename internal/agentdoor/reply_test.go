package agentdoor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const succeeded = `{"v":1,"type":"StepSucceeded","job":"j","step":"lift","attempt":3,"token":"1.lift","output":1}`

// A reply is answered with what the Scheduler made of it. Only replies are taken here.
func TestAReplyIsAnsweredWithWhatCameOfIt(t *testing.T) {
	within(t, func(w *world) {
		w.verdict = machine.Verdict{Kind: machine.Applied}
		got, err := w.Door.Reply(w.t.Context(), succeeded)
		check(w.t, err)
		w.wants("its verdict", got.Kind, machine.Applied)
		w.wants("what was said", w.said, []string{"j: job.StepSucceeded of lift#3, 1.lift"})
		_, err = w.Door.Reply(w.t.Context(), "{")
		w.is("no message", err, wire.ErrPoison)
		due, err := wire.EncodeEvent("j", job.DeadlinePassed{Key: time.Now()})
		check(w.t, err)
		_, err = w.Door.Reply(w.t.Context(), due)
		w.is("what the engine tells itself", err, agentdoor.ErrNoReply)
		w.wants("what was said after that", len(w.said), 1)
		w.replyErr = errDown
		_, err = w.Door.Reply(w.t.Context(), succeeded)
		w.is("it was not saved", err, errDown)
		w.replyErr = store.ErrNotFound
		got, err = w.Door.Reply(w.t.Context(), succeeded)
		check(w.t, err)
		w.wants("of a job that is gone", got, machine.Verdict{Kind: machine.Stale, Reason: "there is no job j"})
		w.replyErr, w.verdict = nil, machine.Verdict{Kind: machine.Newer}
		_, err = w.Door.Reply(w.t.Context(), succeeded)
		w.is("of a job of a newer release", err, store.ErrNewer)
	})
}

// heartbeat is a heartbeat of the crane's.
func (w *world) heartbeat(r job.Reply, progress string) (agentdoor.Standing, error) {
	return w.Door.Heartbeat(w.t.Context(), "j", r, json.RawMessage(progress))
}

// A heartbeat of the holder moves the end to its timeout from now, and never back; its progress is kept.
func TestAHeartbeatOfTheHolderRenewsItsClaim(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := by("lift", given.Claim.LockedBy)
		time.Sleep(40 * time.Second)
		stands, err := w.heartbeat(mine, `"half"`)
		check(w.t, err)
		w.wants("it is held", stands, agentdoor.Standing{Held: agentdoor.Mine, CompleteBy: given.Claim.CompleteBy.Add(40 * time.Second), Left: time.Minute})
		w.wants("its progress", w.found("lift").Progress, job.Progress{Value: `"half"`, At: domain.Instant(time.Now())})
		time.Sleep(10 * time.Second)
		_, err = w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("its progress, when it says none", w.found("lift").Progress.Value, `"half"`)
		w.clock = -30 * time.Second
		back, err := w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("a clock that was set back", back.CompleteBy, given.Claim.CompleteBy.Add(50*time.Second))
		w.clock = 0
		time.Sleep(59 * time.Second)
		stands, err = w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("just before its end", stands.Held, agentdoor.Mine)
		time.Sleep(time.Minute)
		w.closes("lift")
		stands, err = w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("after its end", stands, agentdoor.Standing{Held: agentdoor.Over})
	})
}

// found is the claim of a step of the crane's.
func (w *world) found(step string) job.Claim {
	w.t.Helper()
	found, err := w.claims.Look(w.t.Context(), slot(step), 3, time.Now().Add(time.Hour), time.Now())
	check(w.t, err)
	return found.Claim
}

// closes ends the attempt of a step of the crane's if its time is up; else nobody wants it any more.
func (w *world) closes(step string) {
	w.t.Helper()
	now := time.Now()
	_, err := w.claims.Close(w.t.Context(), slot(step), store.Closing{Attempt: 3, Now: now, Until: now.Add(time.Hour), Ends: now})
	check(w.t, err)
}

// Whoever does not hold the attempt is told that it is over, whatever they know of it.
func TestAHeartbeatOfAnybodyElseIsOver(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := given.Claim.LockedBy
		forged := by("lift", mine)
		forged.Token = "another"
		former := by("lift", mine)
		former.Attempt = 2
		for what, r := range map[string]job.Reply{
			"another holder": by("lift", mine+"x"), "no holder": by("lift", ""), "another token": forged, "another attempt": former,
		} {
			stands, err := w.heartbeat(r, "")
			check(w.t, err)
			w.wants(what, stands, agentdoor.Standing{Held: agentdoor.Over})
		}
		w.takes("count", shared)
		stands, err := w.heartbeat(by("count", job.OutsideShared), "")
		check(w.t, err)
		w.wants("a shared one", stands.Held, agentdoor.Over)
		inside := job.Claim{Attempt: 3, LockedBy: "engine:1", StartedAt: time.Now(), CompleteBy: time.Now().Add(time.Hour)}
		w.send(w.task("inner"))
		check(w.t, w.claims.Claim(w.t.Context(), slot("inner"), inside, time.Now().Add(time.Hour)))
		stands, err = w.heartbeat(by("inner", "engine:1"), "")
		check(w.t, err)
		w.wants("one that the engine's own agent holds", stands.Held, agentdoor.Over)
		w.taskErr = store.ErrNotFound
		stands, err = w.heartbeat(by("lift", mine), "")
		check(w.t, err)
		w.wants("a job that is gone", stands.Held, agentdoor.Over)
	})
}

// An attempt that nobody wants any more has until its end, and is told so. An error leaves open what stands.
func TestAHeartbeatTellsWhatStandsAndNothingElse(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := by("lift", given.Claim.LockedBy)
		for what, at := range map[string]*error{"the job": &w.taskErr, "the claim": &w.lookErr, "the heartbeat": &w.heartbeatErr} {
			*at = errDown
			stands, err := w.heartbeat(mine, "")
			w.is(what, err, errDown)
			if stands.Held == agentdoor.Mine || !stands.CompleteBy.IsZero() {
				w.t.Errorf("%s: got %v, want nothing that stands", what, stands)
			}
			*at = nil
		}
		w.heartbeatErr = store.ErrTaken
		stands, err := w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("taken meanwhile", stands, agentdoor.Standing{Held: agentdoor.Over})
		w.heartbeatErr = nil
		w.closes("lift")
		time.Sleep(40 * time.Second)
		stands, err = w.heartbeat(mine, "")
		check(w.t, err)
		w.wants("unwanted", stands, agentdoor.Standing{Held: agentdoor.Withdrawn, CompleteBy: given.Claim.CompleteBy, Left: 20 * time.Second})
	})
}

// Only the holder of an attempt writes and reads payloads of its job, while it lasts.
func TestOnlyAnAttemptThatLastsTouchesPayloads(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := agentdoor.Attempt{Agent: "crane", Job: "j", Reply: by("lift", given.Claim.LockedBy)}
		p, err := w.WritePayload(w.t.Context(), mine, "text/plain", strings.NewReader("cargo"))
		check(w.t, err)
		w.wants("what was written", fmt.Sprint(p.Bytes, p.Type, p.By), fmt.Sprint(5, "text/plain", "crane"))
		content, err := w.OpenPayload(w.t.Context(), mine, p, 0, -1)
		check(w.t, err)
		text, err := io.ReadAll(content)
		check(w.t, errors.Join(err, content.Close()))
		w.wants("what is read", string(text), "cargo")
		foreign, other := mine, mine
		foreign.Reply.LockedBy, other.Agent = "outside:c-2:n9", "clerk"
		for what, a := range map[string]agentdoor.Attempt{"another holder": foreign, "another agent": other} {
			_, err := w.WritePayload(w.t.Context(), a, "", strings.NewReader("x"))
			w.is(what+" writes", err, agentdoor.ErrOver)
			_, err = w.OpenPayload(w.t.Context(), a, p, 0, -1)
			w.is(what+" reads", err, agentdoor.ErrOver)
		}
		bank := mine
		bank.Agent = "bank"
		_, err = w.WritePayload(w.t.Context(), bank, "", strings.NewReader("x"))
		w.is("an agent that runs inside", err, agentdoor.ErrUnknown)
		w.lookErr = errDown
		_, err = w.OpenPayload(w.t.Context(), mine, p, 0, -1)
		w.is("the claim cannot be read", err, errDown)
		w.lookErr, w.taskErr = nil, errDown
		_, err = w.OpenPayload(w.t.Context(), mine, p, 0, -1)
		w.is("the job cannot be read", err, errDown)
		w.taskErr = nil
		time.Sleep(time.Minute)
		w.closes("lift")
		_, err = w.OpenPayload(w.t.Context(), mine, p, 0, -1)
		w.is("after its end", err, agentdoor.ErrOver)
		w.use(func(c *agentdoor.Config) { c.Large = nil })
		_, err = w.OpenPayload(w.t.Context(), mine, p, 0, -1)
		w.is("an engine without them", err, payload.ErrNone)
	})
}

// A shared attempt has its token alone, and that until its end.
func TestASharedAttemptTouchesPayloadsUntilItsEnd(t *testing.T) {
	within(t, func(w *world) {
		w.takes("count", shared)
		mine := agentdoor.Attempt{Agent: "crane", Job: "j", Reply: by("count", "")}
		_, err := w.WritePayload(w.t.Context(), mine, "", strings.NewReader("x"))
		check(w.t, err)
		time.Sleep(2 * time.Minute)
		_, err = w.WritePayload(w.t.Context(), mine, "", strings.NewReader("x"))
		w.is("at its end", err, agentdoor.ErrOver)
	})
}

// ending is a body at whose nth byte the attempt has ended.
type ending struct {
	io.Reader
	left int
	end  func()
	read int
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if e.left -= n; e.left <= 0 {
		e.end()
	}
	e.read += n
	return n, err
}

// What comes to its end after its attempt is not stored, and what is long is given up on the way.
func TestAPayloadThatOutlastsItsAttemptIsNotStored(t *testing.T) {
	const size = 20 << 20
	for name, end := range map[string]int{"at its end": size, "on its way": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				given := w.takes("lift")
				mine := agentdoor.Attempt{Agent: "crane", Job: "j", Reply: by("lift", given.Claim.LockedBy)}
				body := &ending{Reader: bytes.NewReader(make([]byte, size)), left: end, end: func() { w.taskErr = store.ErrNotFound }}
				_, err := w.WritePayload(w.t.Context(), mine, "", body)
				w.is("it is over", err, agentdoor.ErrOver)
				if most := end + 5<<20; body.read > most {
					w.t.Errorf("%d bytes were read, want at most %d", body.read, most)
				}
			})
		})
	}
}

// sips gives 64 KiB at a time, as a network does.
type sips struct{ io.Reader }

func (s sips) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), 64<<10)]) }

// While a large payload comes, its attempt is looked at every 4 MiB, and not with each read.
func TestTheAttemptOfALargePayloadIsLookedAtNowAndThen(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := agentdoor.Attempt{Agent: "crane", Job: "j", Reply: by("lift", given.Claim.LockedBy)}
		looks := 0
		w.looking = func() { looks++ }
		_, err := w.WritePayload(w.t.Context(), mine, "", sips{bytes.NewReader(make([]byte, 20<<20))})
		check(w.t, err)
		if looks < 5 || looks > 7 {
			w.t.Errorf("got %d looks in 20 MiB, want one before, one every 4 MiB, and one at the end", looks)
		}
	})
}

func TestSoManyPayloadsOfAnAgentAreWrittenAtOnce(t *testing.T) {
	within(t, func(w *world) {
		given := w.takes("lift")
		mine := agentdoor.Attempt{Agent: "crane", Job: "j", Reply: by("lift", given.Claim.LockedBy)}
		ended := make(chan error)
		var bodies []*io.PipeWriter
		for range limits.MaxUploads {
			body, fill := io.Pipe()
			bodies = append(bodies, fill)
			go func() {
				_, err := w.WritePayload(w.t.Context(), mine, "", body)
				ended <- err
			}()
			_, err := fill.Write([]byte("x"))
			check(w.t, err)
		}
		_, err := w.WritePayload(w.t.Context(), mine, "", strings.NewReader("x"))
		w.is("one more", err, agentdoor.ErrUploads)
		for _, fill := range bodies {
			check(w.t, fill.Close())
			check(w.t, <-ended)
		}
		_, err = w.WritePayload(w.t.Context(), mine, "", strings.NewReader("x"))
		check(w.t, err)
	})
}
