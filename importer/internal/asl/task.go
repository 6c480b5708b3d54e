package asl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// resource is what a Task calls.
type resource struct {
	agent, action string
	// what says in words what it was.
	what string
	// lambda: the function is called with Payload, and answers in Payload.
	lambda bool
	http   bool
	// token: somebody completes the task who was given its token; sync: the service does, when it is done.
	token, sync bool
	// data: a sync one answers with data, and not with text (.sync:2).
	data bool
}

// agentFunctions does what Lambda functions did.
const agentFunctions = "functions"

// resourceOf reads the Resource of a Task.
func resourceOf(s *state) resource {
	text := s.body.textOf("Resource")
	parts := strings.Split(text, ":")
	if len(parts) > 5 && parts[0] == "arn" && parts[2] == "states" {
		return integration(s, parts[5:])
	}
	if len(parts) > 6 && parts[0] == "arn" && parts[2] == "lambda" && parts[5] == "function" {
		return resource{agent: agentFunctions, action: snake(placeholder(parts[6])), what: "the Lambda function " + parts[6]}
	}
	return resource{agent: agentFunctions, action: snake(placeholder(text)), what: "the resource " + text}
}

// integration reads what stands behind arn:aws:states:::, or behind account and region.
func integration(s *state, parts []string) resource {
	if parts[0] == "activity" && len(parts) > 1 {
		return resource{agent: snake(parts[1]), action: "work", what: "the activity " + parts[1]}
	}
	var r resource
	rest := strings.Join(parts, ":")
	rest, r.token = strings.CutSuffix(rest, ".waitForTaskToken")
	if base, after, found := strings.Cut(rest, ".sync"); found && (after == "" || after == ":2") {
		rest, r.sync, r.data = base, true, after == ":2"
	}
	r.what = "the integration " + rest
	parts = strings.Split(strings.TrimPrefix(rest, "aws-sdk:"), ":")
	service, action := parts[0], parts[len(parts)-1]
	switch {
	case rest == "lambda:invoke":
		r.agent, r.action, r.lambda = agentFunctions, "invoke", true
		if name := functionName(s); name != "" {
			r.action, r.what = snake(name), "the Lambda function "+name
		}
	case rest == "http:invoke":
		r.agent, r.http, r.what = makegood.HTTPAgent, true, "an HTTP endpoint"
	default:
		r.agent, r.action = strings.ReplaceAll(snake(service), "_", ""), snake(action)
	}
	return r
}

// functionName is the name of the function that lambda:invoke calls, where it is written out.
func functionName(s *state) string {
	text := s.body.get(s.calledWith()).textOf("FunctionName")
	if strings.HasPrefix(text, "{%") {
		return ""
	}
	if _, name, found := strings.Cut(text, ":function:"); found {
		text, _, _ = strings.Cut(name, ":")
	}
	return strings.TrimSuffix(placeholder(text), ":$LATEST")
}

// placeholder is the name in what a template puts in: ${HelloFunctionArn} and its like.
func placeholder(text string) string {
	if _, name, found := strings.Cut(text, "${"); found {
		name, _, _ = strings.Cut(name, "}")
		text = name
	}
	text = strings.TrimPrefix(text, "!GetAtt ")
	text = strings.TrimSuffix(text, ".Arn")
	if cut := strings.TrimSuffix(text, "Arn"); cut != "" {
		text = cut
	}
	return text
}

func (w walk) taskState(here comes) {
	r := resourceOf(w.state)
	if r.http {
		w.httpTask(here, r)
		return
	}
	workflow, why := w.childOf(r)
	if workflow != "" {
		w.childTask(here, r, workflow)
		return
	}
	if why != "" {
		w.tell(w.state).note("it is no step that a job of its own does (docs/children.md): " + why)
	}
	w.task(here, r, func(effective *value) *value { return w.inputOf(r, effective) }, func(output *value) *value { return w.resultOf(r, output) })
}

// task adds the step of a Task. with makes its input of what the state calls with, and result what the state sees of
// the step's output.
func (w walk) task(here comes, r resource, with, result func(*value) *value) {
	s := w.add(w.state.name, here)
	s.agent, s.action, s.do = or(r.agent, agentFunctions), or(r.action, s.name), stubEcho
	if r.http {
		s.do = stubNone
	}
	s.about = append(s.about, "In the state machine it called "+r.what+".")
	s.with = with(w.valueOf(here.arrivals, w.effective))
	w.lasts(s, r)
	w.retries(s)
	w.tell(w.state).becomes(fmt.Sprintf("step %s of agent %s", s.name, s.agent))
	if r.token || r.sync {
		w.handsOver(s, r)
	}
	if w.state.body.get("Credentials") != nil {
		w.tell(w.state).left("Credentials: the agent's own role is what it may do")
	}
	if p := w.polls[w.state]; p != nil {
		w.repeat(s, here, p, result)
	}
	w.compensated(s, here, result)
	w.catching(s, here)
	w.leave(comes{w.done(s, w.apply(here.arrivals, func(arrival *value) (*value, error) {
		return w.after(arrival, result(w.path(".steps."+s.name+".output")))
	})), []*step{s}})
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// inputOf is the input of a step: what the state calls with.
func (w walk) inputOf(r resource, effective *value) *value {
	if !r.lambda {
		return effective
	}
	return w.given(effective, "Payload")
}

// given is a member of what a Task calls with; where there is none it is {}.
func (w walk) given(effective *value, name string) *value {
	if v := w.member(effective, name); !isAbsent(v) {
		return v
	}
	return w.object(nil, nil)
}

// resultOf is what a state sees as its result.
func (w walk) resultOf(r resource, output *value) *value {
	if !r.lambda || r.token {
		return output
	}
	return w.object([]string{"ExecutedVersion", "Payload", "StatusCode"}, []*value{w.text("$LATEST"), output, w.constant("200")})
}

// handsOver makes a step that somebody else completes.
func (w walk) handsOver(s *step, r resource) {
	s.do = stubWait
	s.wait = "365 * 24 * time.Hour"
	if seconds, is := w.seconds("TimeoutSeconds"); is {
		s.wait = strconv.Itoa(seconds) + " * time.Second"
	}
	s.timeout, s.heartbeat = "", ""
	if w.state.body.get("HeartbeatSeconds") != nil {
		w.tell(w.state).note("HeartbeatSeconds of a task that waits: its deadline is moved by makegood heartbeat, or by the completion token, and not by each sign of life")
	}
	if r.sync {
		w.tell(w.state).note("it waited until the service was done: the stub hands the step over, and whoever hears of the end completes it (docs/waiting.md)")
		return
	}
	w.tell(w.state).note("the task token is the step's completion token: whoever called SendTaskSuccess completes the step instead (docs/waiting.md)")
}

// seconds is a number of seconds that is written out.
func (w walk) seconds(field string) (int, bool) {
	n := w.state.body.get(field)
	if n == nil || n.kind != isNumber {
		return 0, false
	}
	seconds, err := strconv.Atoi(n.text)
	return seconds, err == nil && seconds > 0
}

// lasts says how long an attempt may take.
func (w walk) lasts(s *step, r resource) {
	for _, field := range []string{"TimeoutSeconds", "HeartbeatSeconds"} {
		if w.state.body.get(field+"Path") != nil {
			w.tell(w.state).left(field + "Path: a timeout is written out here, and the same for every job")
		}
		if n := w.state.body.get(field); n != nil && n.kind != isNumber {
			w.tell(w.state).left(field + " is an expression: a timeout is written out here, and the same for every job")
		}
	}
	most, longest := int(limits.MaxTimeout/time.Second), int(limits.MaxClaim/time.Second)
	timeout, said := w.seconds("TimeoutSeconds")
	silent, heartbeats := w.seconds("HeartbeatSeconds")
	switch {
	case !said && !heartbeats:
		s.timeout = "15m"
		if r.http {
			s.timeout = "1m"
		}
		return
	case said && timeout > longest:
		w.tell(w.state).note(fmt.Sprintf("TimeoutSeconds %d is cut to 30 days, the longest attempt", timeout))
		timeout = longest
	}
	if said {
		s.timeout = length(timeout)
	}
	if heartbeats {
		w.tell(w.state).note("HeartbeatSeconds: the agent sends its heartbeats by agent.Heartbeat or agent.KeepAlive")
		s.heartbeat = length(min(silent, most))
		if said && silent > timeout {
			s.heartbeat = s.timeout
		}
		return
	}
	if timeout > most {
		w.tell(w.state).note("an attempt of more than an hour must send heartbeats: agent.KeepAlive does")
		s.heartbeat = "10m"
	}
}

// infrastructure are errors of calling a Lambda function, which is nobody's call any more.
var infrastructure = []string{
	"Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException", "Lambda.TooManyRequestsException",
	"Lambda.ClientExecutionTimeoutException", "Lambda.Unknown",
}

// retries says how failures of a step are tried again.
func (w walk) retries(s *step) {
	s.retry = &retry{attempts: 1}
	list := w.state.body.get("Retry")
	if list == nil {
		return
	}
	general := false
	for _, n := range list.items {
		again, ok := w.again(n)
		var kinds []string
		all := false
		for _, e := range n.get("ErrorEquals").items {
			if e.text == "States.ALL" || e.text == "States.TaskFailed" || slices.Contains(infrastructure, e.text) {
				all = true
				continue
			}
			kinds = append(kinds, kindOf(e.text))
			w.renamed(e.text, kindOf(e.text))
		}
		if !ok {
			w.tell(w.state).note("MaxAttempts 0: such an error is not tried again where the agent says that it is final")
			continue
		}
		for _, kind := range kinds {
			if !slices.ContainsFunc(s.routes, func(r route) bool { return r.kind == kind }) {
				s.routes = append(s.routes, route{kind: kind, do: "retry", retry: again})
			}
		}
		if all && !general {
			s.retry, general = again, true
		}
	}
	if len(list.items) > 1 {
		w.tell(w.state).note("attempts are counted for the step as a whole, and not for each entry of Retry")
	}
}

// again is one entry of Retry; false: it tries nothing again.
func (w walk) again(n *node) (*retry, bool) {
	number := func(field string, otherwise float64) float64 {
		if v := n.get(field); v != nil && v.kind == isNumber {
			if f, err := strconv.ParseFloat(v.text, 64); err == nil {
				return f
			}
		}
		return otherwise
	}
	again, interval, rate := number("MaxAttempts", 3), max(number("IntervalSeconds", 1), 0.001), number("BackoffRate", 2)
	if again < 1 {
		return nil, false
	}
	if again > limits.MaxAttempts-1 {
		w.tell(w.state).note(fmt.Sprintf("MaxAttempts %g is cut to %d attempts in all", again, limits.MaxAttempts))
		again = limits.MaxAttempts - 1
	}
	longest := limits.MaxBackoff.Seconds()
	last := min(interval*math.Pow(rate, again-1), number("MaxDelaySeconds", longest), longest)
	if rate != 1 && rate != 2 && again > 1 {
		w.tell(w.state).note(fmt.Sprintf("BackoffRate %g: the wait doubles here, up to the same longest wait", rate))
	}
	interval = min(interval, longest)
	return &retry{int(again) + 1, decimal(interval), decimal(max(last, interval))}, true
}

// decimal writes seconds as a duration, to the millisecond.
func decimal(seconds float64) string {
	if seconds == math.Trunc(seconds) {
		return length(int(seconds))
	}
	return makegood.Duration(time.Duration(seconds*1000) * time.Millisecond).String()
}

// catches is how many entries of a Catch lead somewhere: those at its end that only lead to a Fail are what giving up
// means here by itself, and those of a saga are its undo.
func (t *translator) catches(s *state) int {
	catch := s.body.get("Catch")
	if catch == nil {
		return 0
	}
	return len(catch.items) - t.dropped[s]
}
