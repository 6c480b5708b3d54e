package agentdoor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Who asks for tasks is seen: while a request waits, for 30 s after the last, and by instance.
func TestWhoAsksForTasksIsSeen(t *testing.T) {
	within(t, func(w *world) {
		opened := time.Now()
		polls, known := w.Polls("crane")
		w.wants("before anybody asked", polls, agentdoor.Polls{Since: opened})
		w.wants("the crane is known", known, true)
		_, known = w.Polls("nobody")
		w.wants("nobody is known", known, false)
		waits := make(chan error)
		go func() {
			_, err := w.Take(context.Background(), "crane", agentdoor.Ask{Instance: "crane-1", Max: 1, Wait: 20 * time.Second})
			waits <- err
		}()
		time.Sleep(10 * time.Second)
		polls, _ = w.Polls("crane")
		w.wants("while one waits", polls, agentdoor.Polls{Waiting: 1, Instances: 1, LastAt: time.Now(), Since: opened})
		check(t, <-waits)
		left := time.Now()
		_, err := w.Take(context.Background(), "crane", agentdoor.Ask{Instance: "crane-2", Max: 1})
		check(t, err)
		polls, _ = w.Polls("crane")
		w.wants("just after", polls, agentdoor.Polls{Instances: 2, LastAt: time.Now(), Since: opened})
		time.Sleep(limits.AbsentAfter)
		polls, _ = w.Polls("crane")
		w.wants("half a minute later", polls, agentdoor.Polls{LastAt: left.Add(10 * time.Millisecond), Since: opened})
	})
}

// An instance that is remembered takes no other's place when it asks again.
func TestAsManyInstancesAsTheLimitAreRemembered(t *testing.T) {
	within(t, func(w *world) {
		for i := range 1030 {
			_, err := w.Take(context.Background(), "crane", agentdoor.Ask{Instance: fmt.Sprint("crane-", i%1024), Max: 1})
			check(t, err)
		}
		polls, _ := w.Polls("crane")
		w.wants("remembered", polls.Instances, 1024)
	})
}

// However many names instances give themselves, so many are remembered.
func TestInstancesThatAreRememberedAreBounded(t *testing.T) {
	within(t, func(w *world) {
		for i := range 1100 {
			_, err := w.Take(context.Background(), "crane", agentdoor.Ask{Instance: "crane-" + string(rune('a'+i%26)) + time.Duration(i).String(), Max: 1})
			check(t, err)
		}
		if polls, _ := w.Polls("crane"); polls.Instances > 1024 {
			t.Errorf("%d instances are remembered, the limit is 1024", polls.Instances)
		}
		// Each asked for 10 ms, so 500 did in the last 5 s. Those that were forgotten asked before.
		time.Sleep(limits.AbsentAfter - 5*time.Second)
		polls, _ := w.Polls("crane")
		w.wants("the last 5 s", polls.Instances, 500)
	})
}
