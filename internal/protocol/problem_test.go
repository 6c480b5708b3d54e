package protocol_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// A pause by the breaker says how many probes there were.
func TestAPauseSaysItsProbes(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for n, want := range []string{"paused, 0 probes so far", "paused, 1 probe so far", "paused, 2 probes so far"} {
		if got := protocol.PauseText(makegood.Hold{Tripped: true, Probes: n, NextAt: &at}); !strings.HasPrefix(got, want+", the next at 2026-11-27T12:00:00Z") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Each error of package api is the same error at the other end of the wire, and nothing but an error of package api is.
func TestAnErrorCrossesTheWireAsItIs(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   protocol.Code
		status int
	}{
		{&api.MismatchError{Job: "j", Have: "a", Got: "b"}, protocol.CodeMismatch, 409},
		{&api.RefusedError{Job: "j", Reason: "it is Processed"}, protocol.CodeRefused, 409},
		{&api.RefusedError{Schedule: "s", Reason: "it was changed"}, protocol.CodeRefused, 409},
		{&api.InvalidError{Message: "no", Status: 400, Misfits: []makegood.Misfit{{At: "a", Why: "b"}}}, protocol.CodeInvalid, 400},
		{&api.InvalidError{Message: "too large", Status: 413}, protocol.CodeInvalid, 413},
	} {
		body, status, ok := protocol.ProblemOf(fmt.Errorf("cancel job j: %w", c.err))
		if !ok || body.Code != c.code || status != c.status {
			t.Errorf("%v: got %+v, %d, want %s, %d", c.err, body, status, c.code, c.status)
		}
		if got := carried(t, body).Err(status); !reflect.DeepEqual(got, c.err) {
			t.Errorf("got %#v, want %#v", got, c.err)
		}
	}
	for code, c := range map[protocol.Code]struct {
		err    error
		status int
	}{
		protocol.CodeNoJob: {api.ErrNotFound, 404}, protocol.CodeNoSchedule: {api.ErrNoSchedule, 404}, protocol.CodeNoDefinition: {api.ErrNoDefinition, 404},
		protocol.CodeNoMessage: {api.ErrNoMessage, 404}, protocol.CodeNoPayload: {api.ErrNoPayload, 404}, protocol.CodeNoToken: {api.ErrCompletionToken, 404},
		protocol.CodeDamaged: {api.ErrDamaged, 500}, protocol.CodeNewer: {api.ErrNewer, 503},
	} {
		body, status, ok := protocol.ProblemOf(fmt.Errorf("get: %w", &protocol.CodedError{Kind: c.err, Err: errors.New("its own words")}))
		if !ok || body.Code != code || status != c.status || body.Error != "its own words" {
			t.Errorf("%v: got %+v, %d, want %s, %d and its own words", c.err, body, status, code, c.status)
		}
		if got := carried(t, body).Err(status); !errors.Is(got, c.err) {
			t.Errorf("got %v, want %v", got, c.err)
		}
	}
	if body, _, ok := protocol.ProblemOf(errors.New("disk full")); ok {
		t.Errorf("an error of a store: got %+v, want none", body)
	}
	if err := (protocol.Problem{Error: "hello"}).Err(500); err != nil {
		t.Errorf("an answer without a code: got %v, want no error of package api", err)
	}
}

// carried is a problem at the other end of the wire.
func carried(t *testing.T, p protocol.Problem) (got protocol.Problem) {
	t.Helper()
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}
