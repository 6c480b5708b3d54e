package gate

import (
	"context"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Undos go first, by their arrival. Then the ticket of the most urgent class. In a class the tenants take turns, and
// of a tenant the ticket that came first goes. The ticket at its turn in its class rises a class every ten minutes,
// and takes turns with those of the class that it has come to; of two of one tenant, the one goes that is of the class
// which had its turn before that of the other.
//
// The crowds of the tenants stand in a circle, in the order of their hashes: the next is the first that waits behind
// the crowd that was let in last. The permit that was handed to a ticket last says which that was (job.Turns), and
// permits are handed on for as long as tickets wait. So no count of each tenant is kept, and a turn costs reads and no
// write. Processes that hand on permits at the same moment may give a tenant a turn too many.

// next returns the ticket that goes next, of those that wait, and the turns after it.
func (k *Keeper) next(ctx context.Context, agent string, g store.Gate) (t job.Ticket, after job.Turns, err error) {
	for _, p := range g.Permits {
		if p.Turns.Given > after.Given {
			after = p.Turns
		}
	}
	after.Given++
	if t = g.Waiting[0]; t.Undo {
		return t, after, nil
	}
	var heads [3]job.Ticket // The first tickets of the classes, by their rank. Without a job: none waits.
	for head := t; head.Job != ""; {
		heads[head.Class()] = head
		if head, err = k.config.Store.Behind(ctx, agent, job.RankOf(head.Class()+1, "")); err != nil {
			return t, after, err
		}
	}
	best, risen := 0, len(heads)
	for class, head := range heads {
		its, err := k.first(ctx, agent, head, after.Last[class])
		if err != nil {
			return t, after, err
		}
		switch to := its.ClassAt(domain.Instant(k.config.Now())); {
		case its.Job == "" || to > risen:
		case to < risen, its.Crowd() == t.Crowd() && after.At[class] < after.At[best], sooner(its.Crowd(), t.Crowd(), after.Risen[to]):
			t, best, risen = its, class, to
		}
	}
	after.Last[best], after.At[best], after.Risen[risen] = t.Crowd(), after.Given, t.Crowd()
	return t, after, nil
}

// sooner reports whether a crowd stands before another in the circle, behind the last.
func sooner(crowd, than, last string) bool {
	if (crowd > last) != (than > last) {
		return crowd > last
	}
	return crowd < than
}

// first returns the first ticket of the class of head and of the crowd that comes behind the last in the circle.
func (k *Keeper) first(ctx context.Context, agent string, head job.Ticket, last string) (job.Ticket, error) {
	if head.Job == "" || head.Crowd() > last {
		return head, nil
	}
	t, err := k.config.Store.Behind(ctx, agent, job.RankOf(head.Class(), last+"~")) // No other crowd's rank is between the crowd's and this.
	if t.Job == "" || t.Class() != head.Class() {
		t = head
	}
	return t, err
}
