package storetest

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

func harnessOf(wrap func(m *model) store.Store) Harness {
	m := memstore.New()
	s := wrap(m)
	return Harness{
		Open:   func() store.Store { return s },
		Reopen: func() store.Store { return s },
		Damage: m.Damage, Overwrite: m.Overwrite, Full: m.Overwrite,
	}
}

// mutantVariable names the mutant that a child process of this test runs the suite against.
const mutantVariable = "MAKEGOOD_STORETEST_MUTANT"

// TestEveryRuleIsMissedWhenItIsBroken runs the suite against stores that each break one rule, and
// wants the test of this rule to fail. A test that cannot fail would stand here as a mutant that lives.
func TestEveryRuleIsMissedWhenItIsBroken(t *testing.T) {
	for name, mutant := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// No other rule: a mutant that waits for what its rule brings would wait in vain.
			rule := strings.ReplaceAll(mutant.rule, " ", "_")
			cmd := exec.Command(os.Args[0], "-test.run=^TestMutant$/^"+regexp.QuoteMeta(rule)+"$", "-test.v")
			cmd.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := cmd.CombinedOutput()
			want := "--- FAIL: TestMutant/" + rule + " "
			if err == nil || !strings.Contains(string(out), want) {
				t.Fatalf("got %v, want a line with %q in:\n%s", err, want, out)
			}
		})
	}
}

func TestMutant(t *testing.T) {
	mutant, chosen := mutants()[os.Getenv(mutantVariable)]
	if !chosen {
		t.Skip("run by TestEveryRuleIsMissedWhenItIsBroken")
	}
	Run(t, func(*testing.T) Harness { return harnessOf(mutant.wrap) })
}

type mutant struct {
	rule string
	wrap func(m *model) store.Store
}

// hooked is a model whose methods may be replaced.
type hooked struct {
	*model
	create func(j job.Job) error
	load   func(id string) (job.Job, error)
	save   func(c store.Change) error
	park   func(id string, seen time.Time, reason string, key time.Time) error
	claim  func(slot store.Slot, c job.Claim, until time.Time) error
	close  func(slot store.Slot, c store.Closing) (job.Found, error)
	due    func(now time.Time, after store.Entry, limit int) ([]store.Entry, error)
	list   func(filter store.Filter, cursor string, limit int) (store.Page, error)
	audit  func(cursor string, limit int) ([]store.Audited, string, error)
	take   func(name, holder string, now, until time.Time) error
	give   func(name, holder string) error
	keep   func(name, seen, place string) error
}

func (h hooked) Create(ctx context.Context, j job.Job) error {
	if h.create != nil {
		return h.create(j)
	}
	return h.model.Create(ctx, j)
}

func (h hooked) Load(ctx context.Context, id string) (job.Job, error) {
	if h.load != nil {
		return h.load(id)
	}
	return h.model.Load(ctx, id)
}

func (h hooked) Save(ctx context.Context, c store.Change) error {
	if h.save != nil {
		return h.save(c)
	}
	return h.model.Save(ctx, c)
}

func (h hooked) Park(ctx context.Context, id string, seen time.Time, reason string, key time.Time) error {
	if h.park != nil {
		return h.park(id, seen, reason, key)
	}
	return h.model.Park(ctx, id, seen, reason, key)
}

func (h hooked) Claim(ctx context.Context, slot store.Slot, c job.Claim, until time.Time) error {
	if h.claim != nil {
		return h.claim(slot, c, until)
	}
	return h.model.Claim(ctx, slot, c, until)
}

func (h hooked) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	if h.close != nil {
		return h.close(slot, c)
	}
	return h.model.Close(ctx, slot, c)
}

func (h hooked) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if h.due != nil {
		return h.due(now, after, limit)
	}
	return h.model.Due(ctx, shard, now, after, limit)
}

func (h hooked) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	if h.list != nil {
		return h.list(filter, cursor, limit)
	}
	return h.model.ListJobs(ctx, filter, cursor, limit)
}

func (h hooked) AuditPage(ctx context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	if h.audit != nil {
		return h.audit(cursor, limit)
	}
	return h.model.AuditPage(ctx, cursor, limit)
}

func (h hooked) TakeLease(ctx context.Context, name, holder string, now, until time.Time) error {
	if h.take != nil {
		return h.take(name, holder, now, until)
	}
	return h.model.TakeLease(ctx, name, holder, now, until)
}

func (h hooked) ReleaseLease(ctx context.Context, name, holder string) error {
	if h.give != nil {
		return h.give(name, holder)
	}
	return h.model.ReleaseLease(ctx, name, holder)
}

func (h hooked) KeepPlace(ctx context.Context, name, seen, place string) error {
	if h.keep != nil {
		return h.keep(name, seen, place)
	}
	return h.model.KeepPlace(ctx, name, seen, place)
}

// edit changes a stored job by hand.
func edit(m *model, id string, f func(j *job.Job)) {
	j, _ := m.Stored(id)
	j = j.Clone()
	f(&j)
	m.Overwrite(j)
}

func mutants() map[string]mutant {
	all := saveMutants()
	for _, more := range []map[string]mutant{claimMutants(), closeMutants(), slotMutants(), otherMutants(), listMutants(), auditMutants(), leaseMutants(), newerMutants(), scheduleMutants(), holdMutants(), gateMutants(), historyMutants(), changeMutants()} {
		maps.Copy(all, more)
	}
	return all
}

// forgetful takes off the account what was due, whether its save has held or not.
type forgetful struct{ *model }

func (f forgetful) Save(ctx context.Context, c store.Change) error {
	if err := f.model.Save(ctx, c); err != nil {
		account := spend.On(ctx)
		account.Keep(account.Due())
		return err
	}
	return nil
}

func saveMutants() map[string]mutant {
	ctx := context.Background()
	// after returns a store whose saves do something more to the job.
	after := func(f func(c store.Change, old job.Job, j *job.Job)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				old, _ := m.Load(ctx, c.Job.ID)
				err := m.Save(ctx, c)
				if err == nil {
					edit(m, c.Job.ID, func(j *job.Job) { f(c, old, j) })
				}
				return err
			}}
		}
	}
	// before returns a store whose saves are decided on something else.
	before := func(f func(c *store.Change, stored job.Job)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				stored, _ := m.Load(ctx, c.Job.ID)
				f(&c, stored)
				return m.Save(ctx, c)
			}}
		}
	}
	return map[string]mutant{
		"a save drops the second field of what was counted": {
			"what a job has cost is kept as it is given, where nobody counts",
			after(func(_ store.Change, _ job.Job, j *job.Job) {
				j.Spent = job.Spent{Writes: j.Spent.Writes, HalfReads: j.Spent.HalfReads}
			}),
		},
		"a save counts what it cost, and tells nobody": {
			"a store that counts keeps what it tells the account, and nothing of a save that lost",
			after(func(_ store.Change, _ job.Job, j *job.Job) { j.Spent.Writes++ }),
		},
		"a save that lost takes what was due": {
			"a store that counts keeps what it tells the account, and nothing of a save that lost",
			func(m *model) store.Store { return forgetful{m} },
		},
		"a save ignores the revision": {
			"only one of two saves of a revision wins",
			before(func(c *store.Change, stored job.Job) { c.Job.Rev = stored.Rev }),
		},
		"a save leaves the key": {
			"a save moves CompleteBy, or leaves it",
			after(func(c store.Change, _ job.Job, j *job.Job) { j.CompleteBy = c.Seen }),
		},
		"a save never takes the key away": {
			"a finished job is not in the index",
			after(func(c store.Change, _ job.Job, j *job.Job) {
				if j.CompleteBy.IsZero() {
					j.CompleteBy = c.Seen
				}
			}),
		},
		"a save forgets the claims of a finished job": {
			"claim, then save that finishes the job: the claim stays, and what was closed stays closed",
			func(m *model) store.Store {
				return hooked{model: m, save: func(c store.Change) error {
					err := m.Save(ctx, c)
					if err == nil && c.Job.CompleteBy.IsZero() {
						m.ForgetClaims()
					}
					return err
				}}
			},
		},
		"a save cannot take a pause away": {
			"a save raises the revision by one and the next load shows it",
			after(func(_ store.Change, old job.Job, j *job.Job) {
				if !j.Paused() {
					j.PausedAt = old.PausedAt
				}
			}),
		},
		"a save raises the revision by two": {
			"a save raises the revision by one and the next load shows it",
			after(func(_ store.Change, _ job.Job, j *job.Job) { j.Rev++ }),
		},
		"a save is let through when its job is not there": {
			"what does not exist is not found",
			func(m *model) store.Store {
				return hooked{model: m, save: func(c store.Change) error {
					if _, err := m.Load(ctx, c.Job.ID); err != nil {
						return m.Create(ctx, c.Job)
					}
					return m.Save(ctx, c)
				}}
			},
		},
	}
}
