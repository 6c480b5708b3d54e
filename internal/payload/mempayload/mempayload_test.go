package mempayload_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/mempayload"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
)

func TestStore(t *testing.T) {
	payloadtest.Run(t, func(*testing.T) payloadtest.Harness {
		return payloadtest.Harness{Store: &mempayload.Store{}, Skip100MB: true}
	})
}

func TestDropTakesWhatAJobHasAndNothingElse(t *testing.T) {
	s := &mempayload.Store{}
	for _, job := range []string{"a", "b"} {
		if _, err := s.Write(t.Context(), payload.Place{Job: job}, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drop(t.Context(), "a", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	x := makegood.Payload{SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Bytes: 1}
	if err := s.Keep(t.Context(), "a", x); !errors.Is(err, payload.ErrNotFound) {
		t.Errorf("got %v, want %v", err, payload.ErrNotFound)
	}
	if err := s.Keep(t.Context(), "b", x); err != nil {
		t.Errorf("the other job's is gone: %v", err)
	}
}
