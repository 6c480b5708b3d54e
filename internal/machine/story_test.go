package machine_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata with what happens now; read the diff, commit only what you understand")

// Every file in testdata is a story: it opens with what it tells; a line is something that happens,
// and below ---- stands what was decided. README.md in testdata names the verbs.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	var seen layers.Seen
	told := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Fatalf("%s does not open with what it tells", file)
			}
			got := play(t, string(text), &seen)
			told++
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s tells otherwise now (go test ./internal/machine -rewrite, then read the diff)\ngot:\n%s", file, got)
			}
		})
	}
	if told == len(files) {
		seen.Column(t, "stories")
	}
}

// play runs a story and writes it again, with what was decided.
func play(t *testing.T, text string, seen *layers.Seen) string {
	s := &story{
		t: t, seen: seen, start: time.UnixMilli(0).UTC(), facts: map[machine.Want]machine.Fact{}, definitions: map[string]makegood.Workflow{},
		items: map[string]store.ClaimItem{}, tasks: map[string]makegood.Task{}, children: map[string]child{},
	}
	s.now = s.start
	var out strings.Builder
	var block []string
	skipping := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "----":
			out.WriteString("----\n")
			for _, command := range block {
				out.WriteString(s.do(command))
			}
			block, skipping = nil, true
		case line == "":
			skipping = false
			out.WriteString("\n")
		case skipping:
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		default:
			block = append(block, line)
			out.WriteString(line + "\n")
		}
	}
	if len(block) > 0 {
		t.Fatalf("the story ends without ---- behind %q", block)
	}
	return out.String()
}

// story is a job on its way, the claim items of its steps, and what was last said of it.
type story struct {
	t          *testing.T
	seen       *layers.Seen
	w          makegood.Workflow
	job        job.Job
	start, now time.Time
	random     uint64
	period     time.Duration
	run        int
	holds      job.Holds
	gates      gates
	// lane is the right to run inline attempts; decisions numbers them, since each has another save.
	lane      machine.Lane
	decisions int
	// publishes: somebody hears of every change; publishedUpTo is what is known of how far they did.
	publishes     bool
	publishedUpTo int
	facts         map[machine.Want]machine.Fact
	// items are the claim items by agent and step, tasks what was sent first of each attempt.
	items    map[string]store.ClaimItem
	tasks    map[string]makegood.Task
	children map[string]child // by their ids
	// closings are those that were derived last, answers what the core was told that it asked for.
	closings []job.CloseAttempt
	answers  []string
	// entries are what the last event added to the history.
	entries  []job.Entry
	last     job.Event
	shown    []string
	requests int
	// definitions are others that the job may be moved to, other is the one that is being told.
	definitions map[string]makegood.Workflow
	other       string
}

// args are the words of a line: plain ones, and name=value.
type args struct {
	words  []string
	values map[string]string
}

func parse(line string) args {
	a := args{values: map[string]string{}}
	for word := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			a.values[name] = strings.ReplaceAll(value, "_", " ")
			continue
		}
		a.words = append(a.words, word)
	}
	return a
}

func (a args) has(word string) bool { return slices.Contains(a.words, word) }

func (a args) or(name, otherwise string) string {
	if v, ok := a.values[name]; ok {
		return v
	}
	return otherwise
}

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("%q is not a number", text)
	}
	return n
}

func (s *story) duration(text string) makegood.Duration {
	d, err := makegood.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) do(line string) string {
	a := parse(line)
	switch verb := a.words[0]; verb {
	case "workflow":
		s.w = makegood.Workflow{Name: a.words[1], Timeout: s.duration(a.or("timeout", "0s")), Expect: s.duration(a.or("expect", "0s")), Input: only(a), Part: s.part(a)}
		if on, ok := a.values["onFailure"]; ok {
			if err := s.w.OnFailure.UnmarshalText([]byte(on)); err != nil {
				s.t.Fatal(err)
			}
		}
	case "step":
		if s.other != "" {
			other := s.definitions[s.other]
			other.Steps = append(other.Steps, s.step(a))
			s.definitions[s.other] = other
			return ""
		}
		s.w.Steps = append(s.w.Steps, s.step(a))
	case "definition":
		s.define(a)
	case "plan":
		return s.plan(a)
	case "at":
		s.now = s.start.Add(s.duration(a.words[1]).Std())
	case "random":
		s.random = uint64(s.number(a.words[1]))
	case "period":
		s.period = s.duration(a.words[1]).Std()
	case "fact":
		fact := machine.Fact{Run: !a.has("skip"), Err: a.or("error", ""), For: s.duration(a.or("for", "0s"))}
		if until, ok := a.values["until"]; ok {
			fact.Until = s.start.Add(s.duration(until).Std())
		}
		s.facts[machine.Want{Step: a.words[1], Undo: a.has("undo"), Ready: a.has("ready")}] = fact
	case "publishes":
		s.publishes, s.publishedUpTo = !a.has("off"), s.number(a.or("known", "0"))
	case "park":
		s.park(a)
		return s.show()
	case "hold":
		s.hold(a)
	case "release":
		s.release(a)
	case "limit", "permits":
		s.gate(a)
	case "lane":
		s.lane = machine.Lane{LockedBy: a.words[1], Agents: strings.Split(a.or("agents", "agent"), ",")}
		if until, ok := a.values["until"]; ok {
			s.lane.Until = s.start.Add(s.duration(until).Std())
		}
	case "restart":
		s.run++
	case "lose":
		s.job.CompleteBy = time.Time{}
		return ""
	case "forget":
		s.forget(a)
		return s.show()
	case "transitions":
		s.job.Transitions = s.number(a.words[1])
	case "submit":
		return s.submit(a)
	case "claim":
		return s.claim(a)
	case "heartbeat":
		return s.heartbeat(a)
	case "lie":
		return s.lie(a)
	case "expire":
		return s.expire(a)
	case "close":
		return s.close(a)
	case "child":
		s.child(a)
	case "again":
		return s.deliver(s.last)
	case "fail", "settle":
		if a.has("lost") {
			was := s.job
			s.last = s.event(verb, a)
			out := s.apply(s.last)
			s.job = was
			return out + s.show()
		}
		return s.deliver(s.event(verb, a))
	default:
		return s.deliver(s.event(verb, a))
	}
	return ""
}

func (s *story) step(a args) makegood.Step {
	step := makegood.Step{
		Name: a.words[1], Agent: a.or("agent", "agent"), Shared: a.has("shared"), Inline: a.has("inline"),
		StartBy: s.duration(a.or("startBy", "10m")), Timeout: s.duration(a.or("timeout", "30s")), Heartbeat: s.duration(a.or("heartbeat", "0s")),
		Retry: makegood.Retry{
			Attempts: s.number(a.or("attempts", "5")), Backoff: s.duration(a.or("backoff", "0s")), Max: s.duration(a.or("max", "0s")),
			For: s.duration(a.or("for", "0s")),
		},
	}
	if needs, ok := a.values["needs"]; ok {
		step.Needs = []string{}
		if needs != "-" {
			step.Needs = strings.Split(needs, ",")
		}
	}
	step.Action = a.or("action", "")
	if with, ok := a.values["with"]; ok {
		step.With = json.RawMessage(with)
	}
	step.Any = a.has("any")
	if a.has("only") {
		step.Only = makegood.OnlyOnError
	}
	step.OnError, step.OnAnswer, step.Repeat = s.routes(a), s.onAnswer(a), s.repeat(a)
	step.Waiting, step.Map = s.rules(a, ""), s.mapOf(a)
	if choices, ok := a.values["choices"]; ok {
		step.With = jsonOf(s.t, map[string]any{"choices": strings.Split(choices, ","), "why": strings.Split(a.or("why", ""), ",")})
	}
	switch {
	case a.has("undo"):
		step.Undo = &makegood.Undo{Agent: a.or("undoAgent", ""), Action: "undo_" + step.Name, Retry: makegood.Retry{Attempts: s.number(a.or("undoAttempts", "5")), For: s.duration(a.or("undoFor", "0s"))}}
		step.Undo.Waiting = s.rules(a, "undo")
	case a.or("undo", "") == "none":
		step.Undo = &makegood.Undo{None: true}
	}
	return step
}

// event makes the event that a line tells of.
func (s *story) event(verb string, a args) job.Event {
	switch verb {
	case "succeed":
		return job.StepSucceeded{Reply: s.reply(a)}
	case "fail":
		return job.StepFailed{Reply: s.reply(a), Error: job.StepError{
			Message: a.or("message", "it broke"), Retryable: !a.has("final"), Kind: a.or("kind", ""),
			Applied:    makegood.Applied(a.or("applied", "unknown")),
			RetryAfter: s.duration(a.or("after", "0s")), SlowDown: a.has("slowdown"),
		}, Batch: s.batch(a)}
	case "refused":
		state, _ := s.job.Step(a.words[1])
		return job.DispatchRefused{Step: a.words[1], Attempt: state.Attempt, Reason: "2 MB, the limit is 1 MiB"}
	case "deadline":
		key := s.job.CompleteBy
		if at, ok := a.values["key"]; ok {
			key = s.start.Add(s.duration(at).Std())
		}
		if a.has("unkeyed") {
			key = time.Time{}
		}
		return job.DeadlinePassed{Key: key}
	case "interrupted":
		if !a.has("late") {
			s.run++
		}
		return job.Interrupted{Incarnation: s.run, Clean: a.has("clean")}
	case "told":
		both := !a.has("operator") && !a.has("listener")
		return job.Told{
			Seq: s.number(a.or("seq", strconv.Itoa(s.job.Seq))), Operator: both || a.has("operator"), Listener: both || a.has("listener"),
		}
	case "unheard":
		return job.NotHeard{Seq: s.number(a.or("seq", strconv.Itoa(s.unheard())))}
	case "published":
		return job.Published{Seq: s.number(a.or("seq", strconv.Itoa(s.job.Changes.Seq)))}
	case "unpublished":
		return job.NotPublished{Seq: s.number(a.or("seq", strconv.Itoa(s.job.Changes.Seq)))}
	case "submitted":
		return job.Submitted{}
	case "admitted":
		return s.admitted(a)
	case "held":
		return job.StepHeld{Reply: s.reply(a)}
	}
	if slices.Contains(domain.Verbs(), makegood.Verb(verb)) {
		return s.request(verb, a)
	}
	e, ok := s.waits(verb, a)
	if !ok {
		s.t.Fatalf("a story knows no %q", verb)
	}
	return e
}

func (s *story) submit(a args) string {
	s.w = domain.WithDefaults(s.w)
	submission := machine.Submission{ID: a.or("id", "j"), Definition: "d", Birth: "b", ReplyTo: a.or("replyTo", ""), Later: a.has("later")}
	if at, ok := a.values["startAt"]; ok {
		submission.StartAt = s.start.Add(s.duration(at).Std())
	}
	if input, ok := a.values["input"]; ok {
		submission.Input = job.Payload{Inline: json.RawMessage(input), Bytes: len(input)}
	}
	j, v := machine.Submit(s.w, submission, s.known(), s.now)
	j.Rev = 1
	s.job, s.last = j, job.Submitted{}
	s.seen.Moved(layers.Move{Workflow: s.w, After: j})
	s.entries = v.Entries
	return fmt.Sprintf("%s\n", v.Kind) + s.history() + s.show() + s.commands(s.last)
}

func (s *story) deliver(e job.Event) string {
	s.last = e
	return s.apply(e) + s.show() + s.commands(e)
}

// apply brings an event to the job, and answers what the core asks for.
func (s *story) apply(e job.Event) string {
	facts := s.known()
	s.answers = nil
	next, v := machine.Apply(s.w, s.job, e, facts, s.now)
	for v.Kind == machine.Wanting {
		for _, ask := range v.Asks {
			if _, ok := facts.Found[ask]; ok {
				s.t.Fatalf("%+v was asked twice", ask)
			}
			facts.Found[ask] = s.answer(ask)
		}
		if v.Definition != "" {
			facts.Definition = s.definition(v.Definition, e)
		}
		next, v = machine.Apply(s.w, s.job, e, facts, s.now)
	}
	out := string(v.Kind)
	if v.Reason != "" {
		out += ": " + v.Reason
	}
	if v.Kind == machine.Applied {
		next.Rev++
		before := s.job
		if next.Definition != s.job.Definition {
			s.w = domain.WithDefaults(s.definitions[next.Definition])
		}
		s.job = next
		s.seen.Moved(layers.Move{Workflow: s.w, Before: before, After: next, Event: e})
	}
	s.entries = v.Entries
	return out + "\n" + strings.Join(s.answers, "") + s.history()
}

// commands writes what is to be done now, each once.
func (s *story) commands(events ...job.Event) string {
	var all []job.Command
	for _, e := range events {
		for _, c := range machine.Pending(s.w, s.job, e, s.now) {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	var out strings.Builder
	out.WriteString(s.runs())
	var closings []job.CloseAttempt
	for _, c := range all {
		switch c := c.(type) {
		case job.Dispatch:
			out.WriteString(s.send(c))
		case job.CloseAttempt:
			closings = append(closings, c)
			unwanted := ""
			if c.Mark {
				unwanted = " (unwanted)"
			}
			fmt.Fprintf(&out, "  -> close %s#%d%s\n", named(c.Step, c.Undo), c.Attempt, unwanted)
		case job.PassEdit:
			out.WriteString(s.passEdit(c))
		case job.Announce:
			var to []string
			if c.Operator {
				to = append(to, "operator")
			}
			if c.Listener {
				to = append(to, "listener")
			}
			fmt.Fprintf(&out, "  -> announce %d %s%s to %s: %s\n", c.Seq, c.ProcessState, s.late(c.ExpectBy), strings.Join(to, " and "), c.Reason)
		case job.Ask:
			out.WriteString(s.asks(c))
		case job.TellParent:
			fmt.Fprintf(&out, "  -> tell job %s that the child of %s#%d has ended\n", c.Parent, c.Step, c.Attempt)
		case job.Publish:
			out.WriteString(s.publish(c))
		case job.Remind:
			fmt.Fprintf(&out, "  -> remind at %s\n", s.when(c.Key))
		case job.AlertAgent:
			fmt.Fprintf(&out, "  -> alert: nobody claims the tasks of %s\n", c.Agent)
		default:
			s.t.Fatalf("unknown command %T", c)
		}
	}
	if closings != nil {
		s.closings = closings
	}
	return out.String()
}
