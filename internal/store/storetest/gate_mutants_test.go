package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// gated is a store whose methods for gates may be replaced.
type gated struct {
	*model
	read  func(agent string, most int) (store.Gate, error)
	put   func(agent string, was, is job.Permit) error
	enter func(agent string, t job.Ticket) error
	leave func(agent string, t job.Ticket) error
	count func(agent string, most int) (int, error)
	next  func(agent, rank string) (job.Ticket, error)
	find  func(agent, value string) (string, error)
}

func (g gated) NextGate(ctx context.Context, agent, value string) (string, error) {
	if g.find != nil {
		return g.find(agent, value)
	}
	return g.model.NextGate(ctx, agent, value)
}

func (g gated) Behind(ctx context.Context, agent, rank string) (job.Ticket, error) {
	if g.next != nil {
		return g.next(agent, rank)
	}
	return g.model.Behind(ctx, agent, rank)
}

func (g gated) Gate(ctx context.Context, agent string, most int) (store.Gate, error) {
	if g.read != nil {
		return g.read(agent, most)
	}
	return g.model.Gate(ctx, agent, most)
}

func (g gated) PutPermit(ctx context.Context, agent string, was, is job.Permit) error {
	if g.put != nil {
		return g.put(agent, was, is)
	}
	return g.model.PutPermit(ctx, agent, was, is)
}

func (g gated) Enter(ctx context.Context, agent string, t job.Ticket) error {
	if g.enter != nil {
		return g.enter(agent, t)
	}
	return g.model.Enter(ctx, agent, t)
}

func (g gated) Leave(ctx context.Context, agent string, t job.Ticket) error {
	if g.leave != nil {
		return g.leave(agent, t)
	}
	return g.model.Leave(ctx, agent, t)
}

func (g gated) CountWaiting(ctx context.Context, agent string, most int) (int, error) {
	if g.count != nil {
		return g.count(agent, most)
	}
	return g.model.CountWaiting(ctx, agent, most)
}

// putting is a mutant whose PutPermit is replaced.
func putting(rule string, put func(m *model, agent string, was, is job.Permit) error) mutant {
	return mutant{rule, func(m *model) store.Store {
		return gated{model: m, put: func(agent string, was, is job.Permit) error { return put(m, agent, was, is) }}
	}}
}

// reading is a mutant that changes the gate that it reads, whole, before it takes the first tickets.
func reading(rule string, change func(g *store.Gate)) mutant {
	return mutant{rule, func(m *model) store.Store {
		return gated{model: m, read: func(agent string, most int) (store.Gate, error) {
			g, err := m.Gate(context.Background(), agent, 1000)
			change(&g)
			g.Waiting = g.Waiting[:min(most, len(g.Waiting))]
			return g, err
		}}
	}}
}

// naming is a mutant that has a gate under another name.
func naming(rule string, of func(agent string) string) mutant {
	ctx := context.Background()
	return mutant{rule, func(m *model) store.Store {
		return gated{
			model: m,
			read:  func(agent string, most int) (store.Gate, error) { return m.Gate(ctx, of(agent), most) },
			put:   func(agent string, was, is job.Permit) error { return m.PutPermit(ctx, of(agent), was, is) },
			enter: func(agent string, t job.Ticket) error { return m.Enter(ctx, of(agent), t) },
			leave: func(agent string, t job.Ticket) error { return m.Leave(ctx, of(agent), t) },
			count: func(agent string, most int) (int, error) { return m.CountWaiting(ctx, of(agent), most) },
			next:  func(agent, rank string) (job.Ticket, error) { return m.Behind(ctx, of(agent), rank) },
		}
	}}
}

// storedPermit returns a permit as it is stored.
func storedPermit(m *model, agent string, n int) job.Permit {
	g, _ := m.Gate(context.Background(), agent, 0)
	for _, p := range g.Permits {
		if p.N == n {
			return p
		}
	}
	return job.Permit{N: n}
}

func gateMutants() map[string]mutant {
	ctx := context.Background()
	all := ticketMutants()
	all["a free permit is kept"] = reading("a gate at which no attempt ever stood is empty", func(g *store.Gate) {
		g.Permits = append(g.Permits, job.Permit{})
	})
	all["what is free cannot be freed"] = putting("a gate at which no attempt ever stood is empty", func(m *model, agent string, was, is job.Permit) error {
		if is.Free() && storedPermit(m, agent, is.N).Free() {
			return store.ErrConflict
		}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["permits are read as texts sort"] = reading("a permit is read as it was put, by its number, until it is freed", func(g *store.Gate) {
		slices.SortFunc(g.Permits, func(a, b job.Permit) int { return strings.Compare(fmt.Sprint(a.N), fmt.Sprint(b.N)) })
	})
	all["a permit loses when it was given"] = putting("a permit is read as it was put, by its number, until it is freed", func(m *model, agent string, was, is job.Permit) error {
		is.At = time.Time{}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["a permit is read a write late"] = mutant{"a permit is read as it was put, by its number, until it is freed", func(m *model) store.Store {
		old := store.Gate{}
		return gated{
			model: m, read: func(string, int) (store.Gate, error) { return old, nil },
			put: func(agent string, was, is job.Permit) error {
				old, _ = m.Gate(ctx, agent, 100)
				return m.PutPermit(ctx, agent, was, is)
			},
		}
	}}
	all["a permit is put over any other"] = putting("only one of two puts in the place of a permit wins", func(m *model, agent string, _, is job.Permit) error {
		return m.PutPermit(ctx, agent, storedPermit(m, agent, is.N), is)
	})
	all["a permit is put over another of the same attempt"] = putting("only one of two puts in the place of a permit wins", func(m *model, agent string, was, is job.Permit) error {
		if stored := storedPermit(m, agent, was.N); stored.Ticket.Same(was.Ticket) {
			was = stored
		}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["a permit is put over one that is free by now"] = putting("only one of two puts in the place of a permit wins", func(m *model, agent string, was, is job.Permit) error {
		if storedPermit(m, agent, was.N).Free() {
			was = job.Permit{N: was.N}
		}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["a token is known by its attempt alone"] = putting("a token is put only over the very one that was read", func(m *model, agent string, was, is job.Permit) error {
		if stored := storedPermit(m, agent, was.N); stored.Ticket == was.Ticket {
			was = stored
		}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["a second put conflicts"] = putting("a put of a permit that is made twice succeeds twice", func(m *model, agent string, was, is job.Permit) error {
		if storedPermit(m, agent, was.N).Ticket != was.Ticket {
			return store.ErrConflict
		}
		return m.PutPermit(ctx, agent, was, is)
	})
	all["a permit is looked at and then put"] = mutant{"of many who want a permit exactly one gets it", func(m *model) store.Store {
		looked := barrier()
		return gated{model: m, put: func(agent string, was, is job.Permit) error {
			if storedPermit(m, agent, was.N).Ticket != was.Ticket {
				return store.ErrConflict
			}
			looked()
			return m.PutPermit(ctx, agent, storedPermit(m, agent, was.N), is)
		}}
	}}
	all["all agents have one gate"] = naming("gates are kept apart by agent", func(string) string { return "one" })
	all["agents whose names begin alike have one gate"] = naming("gates are kept apart by agent", func(agent string) string { return agent[:len("A-")+12] })
	all["agents are told apart without their case"] = naming("gates are kept apart by agent", strings.ToLower)
	const apart = "gates of the values of an agent are kept apart, from its own, too"
	all["all values of an agent have one gate"] = naming(apart, func(gate string) string { agent, _, _ := strings.Cut(gate, "/"); return agent })
	all["values that begin alike have one gate"] = naming(apart, func(gate string) string {
		if agent, value, valued := strings.Cut(gate, "/"); valued {
			return agent + "/" + value[:2]
		}
		return gate
	})
	const found = "the gates of values that have permits or tickets are found one after the other"
	all["a gate is found again and again"] = finding(found, func(m *model, agent, _ string) (string, error) { return m.NextGate(ctx, agent, "") })
	all["a gate without permits is not found"] = finding(found, func(m *model, agent, value string) (string, error) {
		for {
			gate, err := m.NextGate(ctx, agent, value)
			if g, _ := m.Gate(ctx, gate, 0); err != nil || gate == "" || len(g.Permits) > 0 {
				return gate, err
			}
			_, value, _ = strings.Cut(gate, "/")
		}
	})
	all["a gate that is empty by now is found"] = mutant{found, func(m *model) store.Store {
		left := map[string]bool{}
		return gated{
			model: m, leave: func(agent string, t job.Ticket) error { left[agent] = true; return m.Leave(ctx, agent, t) },
			find: func(agent, value string) (string, error) {
				gate, err := m.NextGate(ctx, agent, value)
				for name := range left {
					if of, at, _ := strings.Cut(name, "/"); of == agent && at > value && (gate == "" || name < gate) {
						gate = name
					}
				}
				return gate, err
			},
		}
	}}
	all["names are cut"] = mutant{"a permit and a ticket may have the longest names", func(m *model) store.Store {
		return gated{model: m, enter: func(agent string, t job.Ticket) error {
			t.Job = t.Job[:min(len(t.Job), 100)]
			return m.Enter(ctx, agent, t)
		}}
	}}
	return all
}

// barrier returns a call that returns once all callers of a race are in it.
func barrier() func() {
	var mu sync.Mutex
	n, full := 0, make(chan struct{})
	return func() {
		mu.Lock()
		if n++; n == racers {
			close(full)
		}
		mu.Unlock()
		<-full
	}
}

func ticketMutants() map[string]mutant {
	ctx := context.Background()
	const ranked = "tickets are read by their rank, undos first, and no more than asked for"
	sorted := func(compare func(a, b job.Ticket) int) mutant {
		return reading(ranked, func(g *store.Gate) { slices.SortStableFunc(g.Waiting, compare) })
	}
	entering := func(rule string, enter func(m *model, agent string, t job.Ticket) error) mutant {
		return mutant{rule, func(m *model) store.Store {
			return gated{model: m, enter: func(agent string, t job.Ticket) error { return enter(m, agent, t) }}
		}}
	}
	return map[string]mutant{
		"undos wait like all others": sorted(func(a, b job.Ticket) int { return a.Since.Compare(b.Since) }),
		"classes and tenants are not told apart": sorted(func(a, b job.Ticket) int {
			if a.Undo != b.Undo {
				return strings.Compare(a.Rank(), b.Rank())
			}
			return a.Since.Compare(b.Since)
		}),
		"the ticket of a rank is behind it": behind(func(m *model, agent, rank string) (job.Ticket, error) {
			g, err := m.Gate(ctx, agent, 100)
			for _, t := range g.Waiting {
				if t.Rank() >= rank {
					return t, err
				}
			}
			return job.Ticket{}, err
		}),
		"the ticket behind a rank is the first": behind(func(m *model, agent, rank string) (job.Ticket, error) { return m.Behind(ctx, agent, "") }),
		"a permit is taken for a ticket": behind(func(m *model, agent, rank string) (job.Ticket, error) {
			if g, _ := m.Gate(ctx, agent, 0); rank == "" && len(g.Permits) > 0 {
				return g.Permits[0].Ticket, nil
			}
			return m.Behind(ctx, agent, rank)
		}),
		"tickets are read by the names of their jobs": sorted(func(a, b job.Ticket) int { return strings.Compare(a.Job, b.Job) }),
		"all tickets are read": {ranked, func(m *model) store.Store {
			return gated{model: m, read: func(agent string, _ int) (store.Gate, error) { return m.Gate(ctx, agent, 1000) }}
		}},
		"one ticket of a job waits": entering(ranked, func(m *model, agent string, t job.Ticket) error {
			g, _ := m.Gate(ctx, agent, 100)
			for _, other := range g.Waiting {
				if other.Job == t.Job {
					_ = m.Leave(ctx, agent, other)
				}
			}
			return m.Enter(ctx, agent, t)
		}),
		"permits take the room of tickets": {"the first tickets are read behind many permits", func(m *model) store.Store {
			return gated{model: m, read: func(agent string, most int) (store.Gate, error) {
				g, err := m.Gate(ctx, agent, most)
				g.Waiting = g.Waiting[:min(max(0, 100-len(g.Permits)), len(g.Waiting))]
				return g, err
			}}
		}},
		"a ticket that waits stays as it is": entering("a ticket of the same rank takes the place of the one that waits", func(m *model, agent string, t job.Ticket) error {
			g, _ := m.Gate(ctx, agent, 100)
			if slices.ContainsFunc(g.Waiting, t.Same) {
				return nil
			}
			return m.Enter(ctx, agent, t)
		}),
		"a ticket leaves only as it was read": leaving("a ticket of the same rank takes the place of the one that waits", func(m *model, agent string, t job.Ticket) error {
			if g, _ := m.Gate(ctx, agent, 100); !slices.Contains(g.Waiting, t) {
				return store.ErrNotFound
			}
			return m.Leave(ctx, agent, t)
		}),
		"a ticket leaves again and again": leaving("a ticket leaves once", func(m *model, agent string, t job.Ticket) error {
			_ = m.Leave(ctx, agent, t)
			return nil
		}),
		"a ticket takes its time with it": leaving("a ticket leaves once", func(m *model, agent string, t job.Ticket) error {
			if err := m.Leave(ctx, agent, t); err != nil {
				return err
			}
			g, _ := m.Gate(ctx, agent, 100)
			for _, other := range g.Waiting {
				if other.Since.Equal(t.Since) {
					_ = m.Leave(ctx, agent, other)
				}
			}
			return nil
		}),
		"a ticket is looked at and then leaves": {"of many who let a ticket leave exactly one does", func(m *model) store.Store {
			looked := barrier()
			return gated{model: m, leave: func(agent string, t job.Ticket) error {
				if g, _ := m.Gate(ctx, agent, 100); !slices.ContainsFunc(g.Waiting, t.Same) {
					return store.ErrNotFound
				}
				looked()
				_ = m.Leave(ctx, agent, t)
				return nil
			}}
		}},
		"permits are counted": {"the tickets that wait are counted, and no more than asked for", func(m *model) store.Store {
			return gated{model: m, count: func(agent string, most int) (int, error) {
				g, err := m.Gate(ctx, agent, 1000)
				return min(most, len(g.Permits)+len(g.Waiting)), err
			}}
		}},
		"all tickets are counted": {"the tickets that wait are counted, and no more than asked for", func(m *model) store.Store {
			return gated{model: m, count: func(agent string, _ int) (int, error) { return m.CountWaiting(ctx, agent, 1000) }}
		}},
		"a gate is lost with its process": {"a gate is there after the store was opened again", func(m *model) store.Store { return forgotten{m} }},
	}
}

// leaving is a mutant whose Leave is replaced.
func leaving(rule string, leave func(m *model, agent string, t job.Ticket) error) mutant {
	return mutant{rule, func(m *model) store.Store {
		return gated{model: m, leave: func(agent string, t job.Ticket) error { return leave(m, agent, t) }}
	}}
}

// finding is a mutant whose NextGate is replaced.
func finding(rule string, find func(m *model, agent, value string) (string, error)) mutant {
	return mutant{rule, func(m *model) store.Store {
		return gated{model: m, find: func(agent, value string) (string, error) { return find(m, agent, value) }}
	}}
}

// behind is a mutant whose Behind is replaced.
func behind(next func(m *model, agent, rank string) (job.Ticket, error)) mutant {
	return mutant{"the first ticket behind a rank is read", func(m *model) store.Store {
		return gated{model: m, next: func(agent, rank string) (job.Ticket, error) { return next(m, agent, rank) }}
	}}
}

// forgotten is a store that takes what comes to a gate, and keeps none of it.
type forgotten struct{ *model }

func (forgotten) PutPermit(context.Context, string, job.Permit, job.Permit) error { return nil }
func (forgotten) Enter(context.Context, string, job.Ticket) error                 { return nil }
