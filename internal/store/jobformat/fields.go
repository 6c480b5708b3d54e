package jobformat

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// The functions here name the fields of job.proto, each once, in the order of their numbers.

// The numbers that are named elsewhere, too.
const (
	formatNumber  = 1 // of a message that is stored by itself
	createdNumber = 2
	jobNeeds      = 16
	jobActivities = 13
	inDetails     = 4 // the activities of Details
	// Fields of an activity from here on stay with the job when its details move to an item of their own.
	actHot = 64
)

// head has the fields of most jobs, which take a byte for the number of each field.
func (r *record) head(j *job.Job) {
	r.born(j.CreatedAt)
	r.hex(3, &j.Definition)
	r.hex(4, &j.InputHash)
	state(&r.codec, 5, &j.Desired, processStates())
	r.int(6, &j.Round)
	r.hex(7, &j.Birth)
	r.data(8, &j.Secret)
	r.inline(9, &j.Input)
	r.int(10, &j.Transitions)
	r.stepNames(11, j.Steps)
	r.packed(12, &r.summaries)
	r.rests.field(&r.codec, jobActivities)
	r.packed(14, &r.numbers)
	r.int(15, &j.Seq)
}

func (r *record) tail(j *job.Job) {
	r.level(jobNeeds, &j.Needs)
	r.data(17, &r.namesAt)
	r.hashes(18, &r.detailsAt)
	r.plain(19, &j.Definition)
	r.plain(20, &j.InputHash)
	r.plain(21, &j.Birth)
	r.text(22, &j.Input.Ref)
	r.size(23, &j.Input)
	r.time(24, &j.Deadline, r.epoch)
	r.time(25, &j.FinishedAt, r.epoch)
	r.text(26, &j.Reason)
	r.texts(27, &j.Requests)
	r.time(28, &j.PausedAt, r.epoch)
	r.time(29, &j.StartAt, r.epoch)
	r.text(30, &j.ReplyTo)
	r.int(31, &j.Incarnation)
	r.untold(32, &j.Untold)
	r.time(33, &j.RemindAt, r.epoch)
	r.int(34, &j.TellTries)
	r.time(35, &j.TellAt, r.epoch)
	r.int(36, &j.Unheard)
	r.text(37, &j.RequestedBy)
	r.keptOfSteps(38, j.Steps)
	r.int(39, &j.RoundsAgain)
	r.flag(40, &j.AnotherRound)
	r.time(41, &j.NextRoundAt, r.epoch)
	r.int(42, &j.History.Count)
	r.text(43, &j.History.Head)
	r.text(44, &j.History.Firsts)
}

// late has the fields that came after the first release.
func (r *record) late(j *job.Job) {
	r.int(50, &j.Gone)
	r.int64(51, (*int64)(&j.Timeout))
	r.text(55, &j.HeldBy)
	r.text(56, &j.HeldReason)
	r.flag(57, &j.PausedToo)
	r.text(58, &j.Tenant)
	r.labelled(59, &j.Labels)
	r.data(65, &j.Trace)
	r.time(68, &j.ExpectBy, r.epoch)
	r.time(69, &j.WarnAt, r.epoch)
	r.counts(80, &j.Spent.Writes, &j.Spent.HalfReads)
	r.counts(81, &j.Spent.Requests, &j.Spent.Invocations, &j.Spent.GBMicros)
	r.changes(84, &j.Changes)
	r.packed(85, &r.brief)
	r.former(88, &j.Former)
	r.texts(89, &j.Answers)
	r.text(90, &j.FirstReason)
	r.flag(91, &j.RoundAsked)
	r.int(92, &j.Redrives)
	r.edits(93, &j.Edits)
	r.text(94, (*string)(&j.Priority))
}

// details has the fields of an activity that may move to an item of its own. own is the end of the key of an output
// that is kept under its attempt.
func (c *codec) details(a *job.Activity, output *job.Payload, own *string) {
	c.time(1, &a.At, c.epoch)
	from := c.epoch
	if !a.At.IsZero() {
		from = epochOf(a.At)
	}
	c.time(2, &a.StartedAt, from)
	c.time(3, &a.FinishedAt, from)
	c.inline(4, output)
	c.text(5, &a.Cause)
	c.time(6, &a.LookAt, from)
	c.time(7, &a.OpenedAt, from)
	c.stepError(8, &a.Error)
	c.text(9, &output.Ref)
	c.size(10, output)
	c.hex(11, own)
	c.plain(12, own)
	c.flag(13, &a.Closing)
	c.silent(a, from)
	c.text(18, &a.By)
	c.text(19, &a.WentTo)
	c.int(20, &a.Repeats)
	c.time(21, &a.RepeatSince, from)
	c.int(22, &a.RepeatTries)
	c.settled(25, &a.Settled)
	c.time(26, &a.LastStartedAt, from)
	c.time(27, &a.FailingSince, from)
	c.int(28, &a.Answered)
	c.int(29, &a.Refused)
	c.text(30, (*string)(&a.Redriven))
	c.flag(31, &a.Queued)
	c.int64(32, &a.QueuedOver)
}

// silent has the fields of a claim, which are the activity's own.
func (c *codec) silent(a *job.Activity, from int64) {
	if c.writing && a.Silent == nil || !c.writing && (c.num < 14 || c.num > 17) {
		return
	}
	claim := a.Silence()
	c.int(14, &claim.Attempt)
	c.text(15, &claim.LockedBy)
	c.time(16, &claim.StartedAt, from)
	c.time(17, &claim.CompleteBy, from)
	if !c.writing && claim != (job.Claim{}) {
		a.Silent = &claim
	}
}

// decides has the fields of an activity that stay with the job, because decisions need them.
func (c *codec) decides(a *job.Activity) {
	c.wait(64, &a.Wait)
	c.completion(65, &a.Completion)
	c.flag(70, &a.Alone)
	c.int(71, &a.Generation)
	c.small(72, &a.Former)
	c.text(73, &a.Inline)
	c.small(74, &a.Deferred)
}

func (c *codec) wait(num protowire.Number, at **job.Wait) {
	if !there(c, num, at) {
		return
	}
	w := *at
	for m := c.open(num); c.more(&m); c.kept(&m, &w.Kept) {
		c.time(1, &w.Deadline, c.epoch)
		c.int(2, &w.Asked)
		c.int(3, &w.Heard)
		c.int(4, &w.Tries)
		c.time(5, &w.AskAt, c.epoch)
		c.int64(6, (*int64)(&w.For))
	}
}

func (c *codec) completion(num protowire.Number, at **job.Completion) {
	if !there(c, num, at) {
		return
	}
	of := *at
	for m := c.open(num); c.more(&m); c.kept(&m, &of.Kept) {
		c.text(1, &of.Answer)
		c.text(2, &of.Request)
		c.text(3, &of.By)
		c.flag(4, &of.Held)
		c.flag(5, &of.Early)
		c.inline(6, &of.Output)
		c.text(7, &of.Output.Ref)
		c.size(8, &of.Output)
		c.stepError(9, &of.Error)
		c.text(10, &of.Why)
	}
}

func (c *codec) settled(num protowire.Number, at **job.Settlement) {
	if !there(c, num, at) {
		return
	}
	s := *at
	for m := c.open(num); c.more(&m); c.kept(&m, &s.Kept) {
		c.int(1, &s.Round)
		c.text(2, &s.Answer)
		c.text(3, &s.By)
		c.text(4, &s.Reason)
		c.time(5, &s.At, c.epoch)
	}
}

func (c *codec) stepError(num protowire.Number, at **job.StepError) {
	if !there(c, num, at) {
		return
	}
	e := *at
	for m := c.open(num); c.more(&m); c.kept(&m, &e.Kept) {
		c.text(1, &e.Message)
		c.text(2, (*string)(&e.Applied))
		c.flag(3, &e.Retryable)
		c.int64(4, (*int64)(&e.RetryAfter))
		c.text(5, &e.Kind)
		c.flag(6, &e.SlowDown)
	}
}

func (c *codec) former(num protowire.Number, all *[]job.Payload) {
	for p := range each(c, num, all) {
		var none string // It has no room for unknown fields.
		for m := c.open(num); c.more(&m); c.kept(&m, &none) {
			c.inline(1, p)
			c.text(2, &p.Ref)
			c.size(3, p)
		}
	}
}

func (c *codec) edits(num protowire.Number, all *[]job.MapEdit) {
	for e := range each(c, num, all) {
		for m := c.open(num); c.more(&m); c.kept(&m, &e.Kept) {
			c.text(1, &e.Step)
			c.int(2, &e.N)
			c.int(3, &e.Concurrency)
			c.tolerance(4, &e.Tolerate)
		}
	}
}

func (c *codec) tolerance(num protowire.Number, at **makegood.Tolerance) {
	if !there(c, num, at) {
		return
	}
	t, none := *at, "" // It has no room for unknown fields.
	for m := c.open(num); c.more(&m); c.kept(&m, &none) {
		c.int(1, &t.Items)
		c.share(2, &t.Share)
		c.int(3, &t.After)
	}
}

func (c *codec) untold(num protowire.Number, all *[]job.Announcement) {
	for a := range each(c, num, all) {
		for m := c.open(num); c.more(&m); c.kept(&m, &a.Kept) {
			c.int(1, &a.Seq)
			state(c, 2, &a.ProcessState, processStates())
			c.text(3, &a.Reason)
			c.time(4, &a.At, c.epoch)
			c.flag(5, &a.Operator)
			c.flag(6, &a.Listener)
			c.time(7, &a.ExpectBy, c.epoch)
		}
	}
}

// changes has what a job keeps of its transitions, where brief cannot say it.
func (r *record) changes(num protowire.Number, all *job.Changes) {
	c := &r.codec
	if c.num != num && (!c.writing || r.isBrief) {
		return
	}
	before := c.epoch
	for m := c.open(num); c.more(&m); c.kept(&m, &all.Kept) {
		c.int(1, &all.Seq)
		c.int64(2, &all.Rev)
		c.int(3, &all.Tries)
		c.time(4, &all.At, c.epoch)
		for one := range each(c, 5, &all.Pending) {
			c.change(5, one, before)
			before = epochOf(one.At)
		}
	}
}
