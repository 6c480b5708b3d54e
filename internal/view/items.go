package view

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// maxCounted is how many jobs are read to count the items of the maps of a job, beside the one at the top of each map.
	// maxLooked is how many more are read for the reasons of failures in parts that have ended, and for items that are done
	// by jobs of their own.
	maxCounted, maxLooked = 100, 100
	// readsAtOnce is how many of them are read at the same time: on a stack each takes some milliseconds.
	readsAtOnce = 10
	// maxItemGroups is how many reasons are shown.
	maxItemGroups = 10
)

// Counter counts the items of the maps of a job.
type Counter struct {
	load func(ctx context.Context, id string) (job.Job, error)
	now  time.Time
	// counted and looked are how many jobs may yet be read.
	counted, looked int
}

// CountItems returns a Counter for one job; its maps share the reads. load reads a job by its id.
func CountItems(load func(ctx context.Context, id string) (job.Job, error), now time.Time) *Counter {
	return &Counter{load: load, now: now, counted: maxCounted, looked: maxLooked}
}

// Items counts the items of a step with a map. child is the job that does the step, and agent does each item. Where
// the child is not stored, or damaged, its items are not known: nil.
func (from *Counter) Items(ctx context.Context, child, agent string) (*makegood.Items, error) {
	j, err := from.load(ctx, child)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ref, mapped := domain.MapRefOf(j.Definition)
	if !mapped {
		return nil, nil
	}
	c := itemCount{Counter: from, agent: agent, failures: groups{}, stands: groups{}}
	c.items.All = ref.Items
	rest, err := c.read(ctx, c.job(j, part{id: child, items: ref.Items}), &from.counted, c.job, c.unread)
	if err != nil {
		return nil, err
	}
	for _, p := range rest {
		c.items.Uncounted += p.items
	}
	c.jobs = c.jobs[:min(len(c.jobs), maxLooked/2)]
	if _, err := c.read(ctx, c.jobs, &from.looked, c.childOfItem, nil); err != nil {
		return nil, err
	}
	if _, err := c.read(ctx, c.failed, &from.looked, c.reasons, nil); err != nil {
		return nil, err
	}
	c.rated(j)
	c.items.Failures, c.items.Stands = c.failures.largest(), c.stands.largest()
	return &c.items, nil
}

// part is a step of a job of a map: a part of the map, or an item that is done by a job of its own.
type part struct {
	// id is the job that does it; from is the index of its first item.
	id          string
	from, items int
	// of is the job that has the step.
	of, step string
	// born: its job was stored once.
	born bool
}

// at is the i-th step of the job of a part of n items: a part, an item, or a batch of items.
func (p part) at(j job.Job, i, n int) part {
	before := func(i int) int {
		switch size := domain.PartSize(n); {
		case i == len(j.Steps):
			return n
		case size > 1:
			return i * size
		default:
			return domain.FirstItem(j.Steps[i].Name)
		}
	}
	return part{from: p.from + before(i), items: before(i+1) - before(i), of: j.ID, step: j.Steps[i].Name}
}

// itemCount is a count of the items of a map.
type itemCount struct {
	*Counter
	agent string
	items makegood.Items
	// failed are parts that are done and have failed items. jobs are the jobs that do one item each.
	failed, jobs     []part
	failures, stands groups
	ends             []ends
}

// read reads the jobs of parts, and then those of the parts that see returns for them. most is how many jobs it may
// read, and is lowered by each. It returns the parts that it has not read.
func (c *itemCount) read(ctx context.Context, parts []part, most *int, see func(job.Job, part) []part, missing func(part, error)) (rest []part, err error) {
	for len(parts) > 0 && *most > 0 {
		n := min(len(parts), *most)
		rest = append(rest, parts[n:]...)
		*most -= n
		found, errs := c.loadAll(ctx, parts[:n])
		var next []part
		for i, p := range parts[:n] {
			switch err := errs[i]; {
			case err == nil:
				next = append(next, see(found[i], p)...)
			case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged):
				return nil, err
			case missing != nil:
				missing(p, err)
			}
		}
		parts = next
	}
	return append(rest, parts...), nil
}

func (c *itemCount) loadAll(ctx context.Context, parts []part) ([]job.Job, []error) {
	found, errs := make([]job.Job, len(parts)), make([]error, len(parts))
	for begin := 0; begin < len(parts); begin += readsAtOnce {
		var all sync.WaitGroup
		for i := begin; i < min(begin+readsAtOnce, len(parts)); i++ {
			all.Go(func() { found[i], errs[i] = c.load(ctx, parts[i].id) })
		}
		all.Wait()
	}
	return found, errs
}

// job counts the items of a job of the map, and returns the parts whose jobs have to be read for that.
func (c *itemCount) job(j job.Job, p part) (open []part) {
	n := p.items
	if ref, mapped := domain.MapRefOf(j.Definition); mapped {
		n = ref.Items
	}
	if n == 0 {
		return nil // Its only step stands for no item.
	}
	size, before := domain.PartSize(n), c.items.Waiting
	for i := range j.Steps {
		step := &j.Steps[i] // By index: a step is large.
		of := p.at(j, i, n)
		if step.Forward.Attempt > 0 {
			of.id = domain.ChildID(j.ID, j.Birth, step.Name, step.Forward.Attempt)
		}
		switch {
		case size == 1:
			c.anItem(j, step, of)
		case c.wholePart(j, step, of):
		default:
			of.born = step.Undo.State != job.NotStarted || step.Forward.State != job.Dispatched
			open = append(open, of)
		}
	}
	if stands := standing(j); stands != "" && c.items.Waiting == before {
		c.stands.add(makegood.ItemGroup{Reason: stands, Index: p.from, Job: j.ID})
	}
	return open
}

// wholePart counts the items of a part, if it can without its job, and reports whether it did.
func (c *itemCount) wholePart(j job.Job, step *job.StepState, p part) bool {
	a := &step.Forward
	switch {
	case step.Undo.State != job.NotStarted && a.Attempt > 0:
		return false
	case a.State == job.NotStarted, a.Attempt == 0 && a.State != job.Skipped:
		c.items.NotBegun += p.items
	case a.State == job.Done:
		c.items.Done += p.items - a.FailureCount
		c.items.Failed += a.FailureCount
		if a.FailureCount > 0 {
			c.failed = append(c.failed, p)
		}
		if a.Repeats == 0 {
			c.ends = append(c.ends, ends{a.StartedAt, a.FinishedAt, p.items})
		}
	case a.State == job.Skipped && j.Settled(*a) != nil:
		c.items.Done += p.items
	default:
		return false
	}
	return true
}

// unread counts the items of a part whose job is not stored, or damaged.
func (c *itemCount) unread(p part, err error) {
	if errors.Is(err, store.ErrNotFound) && !p.born {
		c.items.NotBegun += p.items
		return
	}
	c.items.Uncounted += p.items
	if errors.Is(err, store.ErrDamaged) {
		c.stands.add(makegood.ItemGroup{Reason: "it cannot be read: " + err.Error(), Index: p.from, Job: p.id})
	}
}

// anItem counts the item of a step, or the items of a batch.
func (c *itemCount) anItem(j job.Job, step *job.StepState, p part) {
	a, undo := &step.Forward, &step.Undo
	switch {
	case undo.State == job.Done:
		c.items.Undone += p.items
		return
	case undo.State == job.Failed:
		c.items.Undone += undo.Answered
		c.before(undo, p)
		return
	case pending(undo.State):
		c.items.Undone += undo.Answered
		c.underWay(undo, p)
		return
	}
	c.items.Done += a.Answered
	left := p.items - a.Answered
	switch {
	case pending(a.State):
		c.underWay(a, p)
	case a.State == job.Failed && j.ProcessState == makegood.JobError:
		c.before(a, p)
	case a.State == job.Failed, passedBy(j, a):
		c.items.Failed += left
		c.failures.add(groupOf(a, p))
		c.ends = append(c.ends, ends{a.FinishedAt, a.FinishedAt, p.items})
	case a.State == job.Done, a.State == job.Skipped:
		c.items.Done += left
		c.ends = append(c.ends, ends{a.FinishedAt, a.FinishedAt, p.items})
	default:
		c.items.NotBegun += left
	}
}

// passedBy reports whether an item has failed, and is tolerated.
func passedBy(j job.Job, a *job.Activity) bool {
	return a.State == job.Skipped && a.Error != nil && j.Settled(*a) == nil
}

func pending(s job.ActivityState) bool {
	return s == job.Dispatched || s == job.Backoff || s == job.Waiting
}

// before counts items that stand before a person.
func (c *itemCount) before(a *job.Activity, p part) {
	c.items.Waiting += p.items - a.Answered
	c.stands.add(groupOf(a, p))
}

func (c *itemCount) underWay(a *job.Activity, p part) {
	c.items.UnderWay += p.items - a.Answered
	if a.State == job.Dispatched && c.agent == makegood.AgentWorkflow {
		c.jobs = append(c.jobs, p)
	}
}

func groupOf(a *job.Activity, p part) makegood.ItemGroup {
	g := makegood.ItemGroup{Items: p.items - a.Answered, Index: p.from, Job: p.of, Step: p.step}
	if a.Refused != 0 {
		g.Index += bits.TrailingZeros(uint(a.Refused))
	}
	if a.Error != nil {
		g.Reason, g.Kind = a.Error.Message, a.Error.Kind
	}
	return g
}

// childOfItem looks at the job that does an item.
func (c *itemCount) childOfItem(j job.Job, p part) []part {
	if stands := standing(j); stands != "" {
		c.items.UnderWay--
		c.items.Waiting++
		c.stands.add(makegood.ItemGroup{Reason: stands, Items: 1, Index: p.from, Job: j.ID})
	}
	return nil
}

// standing says why a job does not go on by itself; empty: it does, or it has ended.
func standing(j job.Job) string {
	switch {
	case j.ProcessState == makegood.JobError:
		return "in Error: " + j.Reason
	case j.HeldBy != "":
		return "paused, since " + j.HeldBy + " is paused"
	case j.Paused():
		return "paused"
	default:
		return ""
	}
}

// reasons notes why items of a part that is done have failed, and returns its own parts with failed items.
func (c *itemCount) reasons(j job.Job, p part) (further []part) {
	ref, _ := domain.MapRefOf(j.Definition)
	size := domain.PartSize(ref.Items)
	for i := range j.Steps {
		a := &j.Steps[i].Forward
		of := p.at(j, i, ref.Items)
		switch {
		case size > 1 && a.State == job.Done && a.FailureCount > 0:
			of.id = domain.ChildID(j.ID, j.Birth, of.step, a.Attempt)
			further = append(further, of)
		case size == 1 && passedBy(j, a):
			c.failures.add(groupOf(a, of))
		}
	}
	return further
}

// groups are items by their reasons.
type groups map[string]makegood.ItemGroup

// numbers do not make a reason another one: "no stock of 17", "no stock of 18".
var numbers = regexp.MustCompile(`[0-9]+`)

func (g groups) add(one makegood.ItemGroup) {
	key := one.Kind + "\n" + numbers.ReplaceAllString(one.Reason, "0")
	if one.Items == 0 {
		key += "\n" + one.Job
	}
	if was, known := g[key]; known {
		was.Items += one.Items
		one = was
	}
	g[key] = one
}

func (g groups) largest() []makegood.ItemGroup {
	all := make([]makegood.ItemGroup, 0, len(g))
	for _, one := range g {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b makegood.ItemGroup) int {
		return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Reason, b.Reason))
	})
	return all[:min(len(all), maxItemGroups)]
}

// ends are items that ended between two times.
type ends struct {
	from, to time.Time
	items    int
}

// within is how many of them ended since a time, as if they had ended evenly.
func (e ends) within(since time.Time) float64 {
	switch {
	case e.to.Before(since):
		return 0
	case !e.from.Before(since):
		return float64(e.items)
	default:
		return float64(e.items) * float64(e.to.Sub(since)) / float64(e.to.Sub(e.from))
	}
}

// rated sets the rate at which items end, over the last minute, or over a longer time in which a few have ended. Where
// no item is under way, it sets none.
func (c *itemCount) rated(top job.Job) {
	const first, few = time.Minute, 10
	left := c.items.NotBegun + c.items.UnderWay + c.items.Uncounted
	if top.ProcessState.Finished() || top.ProcessState == makegood.JobError || top.Desired != makegood.JobProcessed || top.Paused() || left == c.items.NotBegun {
		return
	}
	begun := c.now.Sub(top.CreatedAt)
	for window := first; ; window *= 2 {
		window = min(window, begun)
		ended := 0.0
		for _, e := range c.ends {
			ended += e.within(c.now.Add(-window))
		}
		if ended < few && window < begun {
			continue
		}
		if ended > 0 && window > 0 {
			c.items.PerSecond = ended / window.Seconds()
			c.items.SecondsLeft = int(math.Ceil(float64(left) / c.items.PerSecond))
		}
		return
	}
}
