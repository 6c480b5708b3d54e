package machine_test

import (
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
	"github.com/makegood-dev/makegood/internal/machine"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata with what happens now; read the diff, commit only what you understand")

// Every file in testdata is a story: it opens with what it tells; a line is something that happens,
// and below ---- stands what was decided. README.md in testdata names the verbs.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Fatalf("%s does not open with what it tells", file)
			}
			got := tell(t, string(text))
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
}

// tell runs a story and writes it again, with what was decided.
func tell(t *testing.T, text string) string {
	s := &story{t: t, start: time.UnixMilli(0).UTC(), facts: map[machine.Want]machine.Fact{}}
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
				out.WriteString(s.run(command))
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

// story is a job on its way, and what was last said of it.
type story struct {
	t          *testing.T
	w          makegood.Workflow
	job        makegood.Job
	start, now time.Time
	random     uint64
	facts      map[machine.Want]machine.Fact
	last       makegood.Event
	shown      []string
	requests   int
}

// args are the words of a line: plain ones, and name=value.
type args struct {
	words  []string
	values map[string]string
}

func parse(line string) args {
	a := args{values: map[string]string{}}
	for _, word := range strings.Fields(line) {
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

func (s *story) run(line string) string {
	a := parse(line)
	switch verb := a.words[0]; verb {
	case "workflow":
		s.w = makegood.Workflow{Name: a.words[1], Timeout: s.duration(a.or("timeout", "0s"))}
		if on, ok := a.values["onFailure"]; ok {
			if err := s.w.OnFailure.UnmarshalText([]byte(on)); err != nil {
				s.t.Fatal(err)
			}
		}
		return ""
	case "step":
		s.w.Steps = append(s.w.Steps, s.step(a))
		return ""
	case "submit":
		return s.submit(a)
	case "at":
		s.now = s.start.Add(s.duration(a.words[1]).Std())
		return ""
	case "random":
		s.random = uint64(s.number(a.words[1]))
		return ""
	case "fact":
		s.facts[machine.Want{Step: a.words[1], Undo: a.has("undo")}] = machine.Fact{Run: !a.has("skip"), Err: a.or("error", "")}
		return ""
	case "claim":
		return s.claim(a)
	case "beat":
		return s.beat(a)
	case "again":
		return s.deliver(s.last)
	default:
		return s.deliver(s.event(verb, a))
	}
}

func (s *story) step(a args) makegood.Step {
	step := makegood.Step{
		Name: a.words[1], Agent: a.or("agent", "agent"), Shared: a.has("shared"),
		StartBy: s.duration(a.or("startBy", "10m")), Timeout: s.duration(a.or("timeout", "30s")),
		Retry: makegood.Retry{
			Attempts: s.number(a.or("attempts", "5")), Backoff: s.duration(a.or("backoff", "0s")), Max: s.duration(a.or("max", "0s")),
		},
	}
	if needs, ok := a.values["needs"]; ok {
		step.Needs = []string{}
		if needs != "-" {
			step.Needs = strings.Split(needs, ",")
		}
	}
	switch {
	case a.has("undo"):
		step.Undo = &makegood.Undo{Action: "undo_" + step.Name, Retry: makegood.Retry{Attempts: s.number(a.or("undoAttempts", "5"))}}
	case a.or("undo", "") == "none":
		step.Undo = &makegood.Undo{None: true}
	}
	return step
}

// event makes the event that a line tells of; replies come from the claim that is held, unless said
// otherwise.
func (s *story) event(verb string, a args) makegood.Event {
	switch verb {
	case "succeed", "fail":
		step := a.words[1]
		held := s.job.Claims.Slots[step]
		state, _ := s.job.Step(step)
		attempt := s.number(a.or("attempt", strconv.Itoa(state.Attempt)))
		by := a.or("by", held.LockedBy)
		if verb == "succeed" {
			return makegood.StepSucceeded{Step: step, Attempt: attempt, LockedBy: by}
		}
		return makegood.StepFailed{Step: step, Attempt: attempt, LockedBy: by, Error: makegood.StepError{
			Message: a.or("message", "it broke"), Retryable: !a.has("final"),
			Applied:    makegood.Applied(a.or("applied", "unknown")),
			RetryAfter: s.duration(a.or("after", "0s")),
		}}
	case "refused":
		state, _ := s.job.Step(a.words[1])
		return makegood.DispatchRefused{Step: a.words[1], Attempt: state.Attempt, Reason: "2 MB, the limit is 1 MiB"}
	case "deadline":
		key := s.job.CompleteBy
		if at, ok := a.values["key"]; ok {
			key = s.start.Add(s.duration(at).Std())
		}
		return makegood.DeadlinePassed{Key: key}
	case "interrupted":
		return makegood.Interrupted{Incarnation: s.job.Incarnation + 1}
	case "told":
		return makegood.Told{Seq: s.job.Seq}
	case "submitted":
		return makegood.Submitted{}
	}
	if slices.Contains(makegood.Verbs(), makegood.Verb(verb)) {
		s.requests++
		return makegood.Requested{Verb: makegood.Verb(verb), Request: a.or("request", fmt.Sprintf("r%d", s.requests)), Reason: a.or("reason", "")}
	}
	s.t.Fatalf("a story knows no %q", verb)
	return nil
}

func (s *story) known() machine.Facts {
	values := make(map[machine.Want]machine.Fact)
	for _, step := range s.w.Steps {
		for _, undo := range []bool{false, true} {
			w := machine.Want{Step: step.Name, Undo: undo}
			values[w] = machine.Fact{Run: true}
			if fact, ok := s.facts[w]; ok {
				values[w] = fact
			}
		}
	}
	return machine.Facts{Random: s.random, Values: values}
}

func (s *story) submit(a args) string {
	s.w = s.w.WithDefaults()
	submission := machine.Submission{ID: "j", Definition: "d", ReplyTo: a.or("replyTo", ""), Later: a.has("later")}
	if at, ok := a.values["startAt"]; ok {
		submission.StartAt = s.start.Add(s.duration(at).Std())
	}
	job, v := machine.Submit(s.w, submission, s.known(), s.now)
	job.Rev = 1
	s.job, s.last = job, makegood.Submitted{}
	return fmt.Sprintf("%s\n", v.Kind) + s.show() + s.commands(s.last)
}

func (s *story) deliver(e makegood.Event) string {
	s.last = e
	next, v := machine.Apply(s.w, s.job, e, s.known(), s.now)
	out := string(v.Kind)
	if v.Reason != "" {
		out += ": " + v.Reason
	}
	if v.OnClaims {
		out += " (if no claim was made meanwhile)"
	}
	out += "\n"
	if v.Kind == machine.Applied {
		next.Rev++
		s.job = next
	}
	return out + s.show() + s.commands(e)
}

func (s *story) commands(e makegood.Event) string {
	var out strings.Builder
	for _, c := range machine.Pending(s.w, s.job, e) {
		switch c := c.(type) {
		case makegood.Dispatch:
			task := machine.TaskOf(s.w, s.job, c)
			fmt.Fprintf(&out, "  -> task %s#%d key %s", task.Action, task.Attempt, task.Key)
			if task.Undo != nil {
				fmt.Fprintf(&out, " outcome %s", task.Undo.Outcome)
			}
			out.WriteString("\n")
		case makegood.Announce:
			fmt.Fprintf(&out, "  -> announce %d %s: %s\n", c.Seq, c.ProcessState, c.Reason)
		case makegood.Remind:
			fmt.Fprintf(&out, "  -> remind at %s\n", s.when(c.Key))
		case makegood.AlertAgent:
			fmt.Fprintf(&out, "  -> alert: nobody claims the tasks of %s\n", c.Agent)
		}
	}
	return out.String()
}

// claim does what package store says that a claim does.
func (s *story) claim(a args) string {
	step := a.words[1]
	attempt, open := s.job.Open[step]
	if n, ok := a.values["attempt"]; ok {
		open = open && attempt == s.number(n)
	}
	held, ok := s.job.Claims.Slots[step]
	switch {
	case !open:
		return "withdrawn\n"
	case ok && held.Attempt >= attempt:
		return "taken\n"
	}
	i := slices.IndexFunc(s.w.Steps, func(d makegood.Step) bool { return d.Name == step })
	timeout := s.w.Steps[i].Timeout
	c := makegood.Claim{Attempt: attempt, LockedBy: a.or("by", "a1"), StartedAt: s.now, CompleteBy: s.now.Add(timeout.Std())}
	s.job = s.job.Clone()
	if s.job.Claims.Slots == nil {
		s.job.Claims.Slots = map[string]makegood.Claim{}
	}
	s.job.Claims.Slots[step] = c
	s.job.Claims.Rev++
	if c.CompleteBy.Before(s.job.CompleteBy) {
		s.job.CompleteBy = c.CompleteBy
	}
	return s.show()
}

func (s *story) beat(a args) string {
	step := a.words[1]
	c, ok := s.job.Claims.Slots[step]
	if !ok {
		return "over\n"
	}
	i := slices.IndexFunc(s.w.Steps, func(d makegood.Step) bool { return d.Name == step })
	c.CompleteBy = s.now.Add(s.w.Steps[i].Timeout.Std())
	s.job = s.job.Clone()
	s.job.Claims.Slots[step] = c
	s.job.Claims.Rev++
	if s.job.Open[step] != c.Attempt {
		return "withdrawn\n" + s.show()
	}
	return s.show()
}

// show writes what is different from what was last shown.
func (s *story) show() string {
	lines := s.describe()
	var out strings.Builder
	for _, line := range lines {
		if !slices.Contains(s.shown, line) {
			out.WriteString("  " + line + "\n")
		}
	}
	s.shown = lines
	return out.String()
}

func (s *story) when(at time.Time) string {
	if at.IsZero() {
		return "none"
	}
	return at.Sub(s.start).String()
}

func (s *story) describe() []string {
	j := s.job
	job := fmt.Sprintf("job %s", j.ProcessState)
	if !j.ProcessState.Finished() && j.Desired != makegood.Processed {
		job += ", wanted " + string(j.Desired)
	}
	if j.Paused() {
		job += ", paused"
	}
	if j.Round > 1 {
		job += fmt.Sprintf(", round %d", j.Round)
	}
	if j.FailureCount > 0 {
		job += fmt.Sprintf(", failures %d", j.FailureCount)
	}
	if j.Reason != "" {
		job += ": " + j.Reason
	}
	lines := []string{job}
	for _, step := range j.Steps {
		lines = append(lines, s.activity(step.Name, step, step.Forward)...)
		lines = append(lines, s.activity("undo of "+step.Name, step, step.Undo)...)
	}
	return append(lines, "CompleteBy "+s.when(j.CompleteBy))
}

func (s *story) activity(name string, step makegood.StepState, a makegood.Activity) []string {
	if a.State == makegood.NotStarted && a.Attempt == 0 {
		return nil
	}
	state := string(a.State)
	if a.State == makegood.NotStarted {
		state = "not started"
	}
	line := fmt.Sprintf("%s: %s", name, state)
	switch a.State {
	case makegood.Backoff:
		line += " until " + s.when(a.At)
	case makegood.Dispatched:
		line += fmt.Sprintf(" #%d", a.Attempt)
		if a.Resent > 0 {
			line += fmt.Sprintf(" (sent again %d times, last at %s)", a.Resent, s.when(a.At))
		}
		if c, ok := s.job.Claims.Slots[step.Name]; ok && c.Attempt == a.Attempt {
			line += fmt.Sprintf(", claimed by %s until %s", c.LockedBy, s.when(c.CompleteBy))
		}
	}
	if a.Unknown && a.State != makegood.Done {
		line += ", outcome unknown"
	}
	return []string{line}
}

// TestMain runs the random tests longer than rapid does by itself; -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
