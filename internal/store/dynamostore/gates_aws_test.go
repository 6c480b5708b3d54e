//go:build aws

package dynamostore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// aTicket returns one with the longest names.
func aTicket(n int) job.Ticket {
	return job.Ticket{
		Job: fmt.Sprintf("%0*d", makegood.MaxJobIDBytes, n), Birth: "0123456789abcdef", Step: strings.Repeat("s", limits.MaxNameBytes),
		Attempt: 1<<31 - 1, Since: time.UnixMilli(1_700_000_000_000).UTC(), Rev: 1 << 40,
	}
}

var longAgent = strings.Repeat("a", limits.MaxNameBytes)

// Each write of a gate is one unit, however long the names; a read is as many as the permits and the tickets that are
// asked for take, however many wait.
func TestWhatAGateCosts(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	free, given := job.Permit{N: 999_999}, job.Permit{N: 999_999, Ticket: aTicket(0), At: aTicket(0).Since}
	given.Turns = job.Turns{Given: 1e9, Last: [3]string{"", aTicket(0).Crowd(), aTicket(0).Crowd()}, At: [3]int64{0, 1e9, 1e9}, Risen: [3]string{"", aTicket(0).Crowd(), aTicket(0).Crowd()}}
	for i := range 300 {
		must(t, "enter", s.Enter(t.Context(), longAgent, aTicket(i)))
	}
	for _, c := range []struct {
		what  string
		do    func() error
		units float64
	}{
		{"give", func() error { return s.PutPermit(t.Context(), longAgent, free, given) }, 1},
		{"enter", func() error { return s.Enter(t.Context(), longAgent, aTicket(300)) }, 1},
		{"leave", func() error { return s.Leave(t.Context(), longAgent, aTicket(300)) }, 1},
		{"read", func() error { _, err := s.Gate(t.Context(), longAgent, 5); return err }, 11},
		{"behind", func() error { _, err := s.Behind(t.Context(), longAgent, aTicket(0).Rank()); return err }, 1},
		{"count", func() error { _, err := s.CountWaiting(t.Context(), longAgent, 10); return err }, 2},
		{"free", func() error { return s.PutPermit(t.Context(), longAgent, given, free) }, 1},
	} {
		tab.spent.take()
		must(t, c.what, c.do())
		if writes, reads, got := sum(tab.spent.take()); writes+reads > c.units || len(got) != 1 {
			t.Errorf("%s: got %v, want one request of at most %v units", c.what, got, c.units)
		}
	}
}

// The SDK tries a write again whose answer was lost. A put finds its own ticket; a ticket that has left is gone.
func TestAWriteOfAGateWhoseAnswerWasLost(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	free := job.Permit{N: 1}
	first, second := job.Permit{N: 1, Ticket: aTicket(1)}, job.Permit{N: 1, Ticket: aTicket(2)}
	tab.transport.once("PutItem")
	must(t, "give", s.PutPermit(t.Context(), "shop", free, first))
	tab.transport.once("PutItem")
	must(t, "put over another", s.PutPermit(t.Context(), "shop", first, second))
	tab.transport.once("DeleteItem")
	must(t, "free", s.PutPermit(t.Context(), "shop", second, free))
	tab.transport.once("PutItem")
	must(t, "enter", s.Enter(t.Context(), "shop", first.Ticket))
	tab.transport.once("DeleteItem")
	if err := s.Leave(t.Context(), "shop", first.Ticket); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("leave: got %v, want %v", err, store.ErrNotFound)
	}
	if g, err := s.Gate(t.Context(), "shop", 5); err != nil || len(g.Permits)+len(g.Waiting) > 0 {
		t.Errorf("got %v, %v, want an empty gate", g, err)
	}
}

// Lists, audits and sweeps leave out what stands at a gate, and stop and go on in the middle of it.
func TestAGateIsTakenForNoJob(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("gated-1")
	must(t, "create", s.Create(t.Context(), j))
	for i := range 5 {
		must(t, "give", s.PutPermit(t.Context(), "shop", job.Permit{N: i}, job.Permit{N: i, Ticket: aTicket(i)}))
		must(t, "enter", s.Enter(t.Context(), "shop", aTicket(i)))
	}
	var audited, listed []string
	for page := ""; ; {
		jobs, next, err := s.AuditPage(t.Context(), page, 1)
		must(t, "audit", err)
		for _, a := range jobs {
			audited = append(audited, a.Job)
		}
		if page = next; page == "" {
			break
		}
	}
	for _, filter := range []store.Filter{{}, {Workflow: j.Workflow}, {State: j.ProcessState}} {
		page, err := s.ListJobs(t.Context(), filter, "", 100)
		must(t, "list", err)
		for _, one := range page.Jobs {
			listed = append(listed, one.ID)
		}
	}
	for shard := range s.Shards() {
		due, err := s.Due(t.Context(), shard, j.CompleteBy.Add(time.Hour), store.Entry{}, 10)
		must(t, "due", err)
		for _, e := range due {
			audited = append(audited, e.Job)
		}
	}
	same(t, "audited and due", audited, []string{j.ID, j.ID})
	same(t, "listed", slices.Compact(listed), []string{j.ID})
}

func TestADamagedGateIsNotTakenForAnEmptyOne(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	for agent, key := range map[string]item{"pay": permitKey("pay", 1), "shop": ticketKey("shop", aTicket(1))} {
		key[attrData] = blob([]byte("{"))
		_, err := tab.config.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tab.name, Item: key})
		must(t, "put", err)
		if g, err := s.Gate(t.Context(), agent, 5); !errors.Is(err, store.ErrDamaged) || len(g.Permits)+len(g.Waiting) > 0 {
			t.Errorf("%s: got %v, %v, want %v", agent, g, err, store.ErrDamaged)
		}
	}
}
