// Command schema writes docs/workflow.schema.json, the JSON Schema of workflow files, for editors, and the same as a
// page. Its fields are those of the Go types and its numbers are makegood's limits. Rules beyond a schema, such as that
// needs name steps, are checked only by the reader of workflow files.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

//go:generate go run .

// file is where the schema is, from this folder.
const file = "../../../docs/workflow.schema.json"

func main() {
	text, err := write(workflowSchema())
	if err == nil {
		err = errors.Join(os.WriteFile(file, text, 0o644), os.WriteFile(referenceFile, reference(workflowSchema()), 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func write(s *schema) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(s)
	return text.Bytes(), err
}

// schema is a JSON Schema, as far as it is needed here.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Const       string             `json:"const,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Default     any                `json:"default,omitempty"`
	Minimum     int                `json:"minimum,omitempty"`
	Maximum     int                `json:"maximum,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	MaxItems    int                `json:"maxItems,omitempty"`
	UniqueItems bool               `json:"uniqueItems,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	// Patterned are the members of an object with names that a workflow chooses.
	Patterned map[string]*schema `json:"patternProperties,omitempty"`
	Required  []string           `json:"required,omitempty"`
	// Closed is additionalProperties: false; every object here is.
	Closed *bool              `json:"additionalProperties,omitempty"`
	OneOf  []*schema          `json:"oneOf,omitempty"`
	Defs   map[string]*schema `json:"$defs,omitempty"`
}

func workflowSchema() *schema {
	s := object(makegood.Workflow{}, map[string]*schema{
		"name":      name(limits.WorkflowName, "The workflow's name."),
		"expect":    duration("How long a job is expected to take; an operator is told of one that will take longer, before it has. Below the timeout; at most %v.", limits.MaxJobTimeout),
		"timeout":   duration("How long the whole job may go forward; it never stops an undo. At most %v.", limits.MaxJobTimeout),
		"onFailure": onFailure(),
		"input": {
			Type:        "object",
			Description: fmt.Sprintf("A JSON Schema (draft 2020-12) that the input of a job must fit; a submission that does not is refused. At most %d bytes as JSON. Default: any input does.", limits.MaxInputSchemaBytes),
		},
		"steps": {
			Type: "array", MinItems: 1, MaxItems: limits.MaxSteps, Items: &schema{Ref: "#/$defs/step"},
			Description: fmt.Sprintf("At most %d.", limits.MaxSteps),
		},
	}, "name", "steps")
	// They are in a file, and no part of the workflow that a job keeps.
	s.Properties["schedules"] = &schema{
		Type: "array", MaxItems: limits.MaxSchedules, Items: &schema{Ref: "#/$defs/schedule"},
		Description: "When jobs of the workflow begin by themselves.",
	}
	s.Properties["defaults"] = closed(map[string]*schema{
		"startBy": step().Properties["startBy"], "timeout": step().Properties["timeout"], "retry": {Ref: "#/$defs/retry"},
		"undo": closed(map[string]*schema{"retry": {Ref: "#/$defs/retry"}}),
	})
	s.Properties["defaults"].Description = "The defaults of steps; timeout is for steps without a heartbeat alone. Not for approval and wait."
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "A Makegood workflow"
	s.Defs = map[string]*schema{"step": step(), "undo": undo(), "retry": retry(), "waiting": waiting(), "route": route(), "schedule": schedule()}
	return s
}

func schedule() *schema {
	s := object(makegood.Schedule{}, map[string]*schema{
		"name":     name(limits.ScheduleName, "Unique where it is kept; it begins the ids of its jobs, NAME:TIME."),
		"workflow": {},
		"cron":     {Type: "string", Description: "Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly."},
		"every":    duration("A rate, in the place of cron, counted from 1970-01-01T00:00:00Z. 10s to %v.", limits.MaxScheduleEvery),
		"zone":     {Type: "string", Description: "The time zone of cron, as Europe/Berlin. Default: UTC."},
		"input":    {Description: "The input of the jobs; its strings may hold expressions over .time and .schedule. Default: {time: \"${ .time }\"}."},
		"missed":   {Type: "string", Pattern: "^(skip|one|all)$", Description: "What becomes of fires that are missed: none, the latest, or the latest atMost are made up for. Default: one."},
		"atMost":   {Type: "integer", Minimum: 1, Maximum: limits.MaxMissed, Description: "How many fires missed: all makes up for."},
		"overlap":  {Type: "string", Pattern: "^(allow|skip|queue)$", Description: "What becomes of a fire while the job of the one before is unfinished. Default: allow."},
	}, "name")
	delete(s.Properties, "workflow") // It is that of the file.
	return s
}

func step() *schema {
	return object(makegood.Step{}, map[string]*schema{
		"name":    name(limits.StepName, "Unique in the workflow."),
		"agent":   name(limits.AgentName, "The agent that gets the task; http is built in."),
		"action":  name(limits.ActionName, "What the agent is asked to do. Default: the step's name."),
		"needs":   needs(),
		"only":    {Const: makegood.OnlyOnError, Description: "The step begins when the onError or onAnswer of another goes to it, and else is skipped."},
		"when":    {Type: "string", Description: `An expression "${ ... }" that gives true or false; false skips the step.`},
		"with":    {Description: "The task's input; its strings may hold expressions. Default: the job's input."},
		"startBy": duration("How long a task may wait unclaimed before it is sent again. At most %v.", limits.MaxStartBy).or(domain.DefaultStartBy),
		"timeout": duration("How long an attempt may take, counted from its claim. At most %v; with a heartbeat 720h0m0s, "+
			"which is then the default.", limits.MaxTimeout).or(domain.DefaultTimeout),
		"heartbeat": duration("How long the agent may be silent while it works. At most %v. Default: the timeout.", limits.MaxTimeout),
		"exclusive": {Type: "boolean", Default: true, Description: "Claim before the effect. False: an attempt may run more than once."},
		"retry":     {Ref: "#/$defs/retry"},
		"onError": {
			Type: "array", MaxItems: limits.MaxRoutes, Items: &schema{Ref: "#/$defs/route"},
			Description: fmt.Sprintf("Where errors lead, by their kind; the first route that is for one counts. At most %d.", limits.MaxRoutes),
		},
		"onAnswer": {
			Type: "object", Patterned: map[string]*schema{".": {
				Type: "string", Pattern: `^(undo|stop|fail|goto +` + limits.StepName.Pattern() + `)$`,
				Description: "undo: undo the job. stop: Error. fail: the step has failed for good, with an error of the kind answer. goto STEP: pass the step by, and go there.",
			}},
			Description: "Of agent approval: where an answer leads, each one of its choices. An answer that is not here lets the job go on.",
		},
		"repeat": repeat(),
		"undo": {
			OneOf:       []*schema{{Const: "none"}, {Ref: "#/$defs/undo"}},
			Description: "How the step is undone. none: it is knowingly irreversible.",
		},
		"waiting": {Ref: "#/$defs/waiting"},
	}, "name", "agent")
}

func needs() *schema {
	list := &schema{
		Type: "array", MaxItems: limits.MaxSteps, UniqueItems: true, Items: &schema{Type: "string"},
		Description: "The steps that must be done or skipped before. Default: the step above; [] starts at once.",
	}
	closed := false
	anyOf := &schema{
		Type: "object", Required: []string{"any"}, Closed: &closed,
		Properties: map[string]*schema{"any": {
			Type: "array", MinItems: 2, MaxItems: limits.MaxSteps, UniqueItems: true, Items: &schema{Type: "string"},
			Description: "The first one that is done suffices; the others go on.",
		}},
	}
	return &schema{OneOf: []*schema{list, anyOf}}
}

func route() *schema {
	return object(makegood.ErrorRoute{}, map[string]*schema{
		"kind": {
			Type: "string", Pattern: `^(\*|` + limits.ErrorKind.Pattern() + `)$`,
			Description: "The kind of error, such as timeout or http_404; * is every error.",
		},
		"do": {
			Type: "string", Pattern: `^(fail|stop|skip|retry|goto +` + limits.StepName.Pattern() + `)$`,
			Description: "fail: give the step up at once, and go on as onFailure says. retry: try again, also after a final error. When it is given up, skip, goto STEP: " +
				"pass it by; stop: put the job in Error, whatever onFailure says, which is the default of the kinds expression and panic.",
		},
		"retry":  {Ref: "#/$defs/retry"},
		"output": {Description: fmt.Sprintf("Of skip: the step's output, without expressions; at most %d bytes as JSON. Default: null.", limits.MaxInlineBytes)},
	}, "kind", "do")
}

func repeat() *schema {
	s := object(makegood.Repeat{}, map[string]*schema{
		"until": {Type: "string", Description: `An expression "${ ... }" that gives true when the step is ready; .output is what the latest attempt gave.`},
		"every": duration("How long after a success that is not ready the next attempt begins. At most %v.", limits.MaxBackoff).or(domain.DefaultEvery),
		"for":   duration("How long after the first attempt another may begin. At most %v.", limits.MaxJobTimeout).or(domain.DefaultFor),
		"attempts": {
			Type: "integer", Minimum: 1, Maximum: limits.MaxRepeats, Default: limits.MaxRepeats,
			Description: "How many successes there may be.",
		},
	}, "until")
	s.Description = "Do the step again until it is ready."
	return s
}

func undo() *schema {
	return object(makegood.Undo{}, map[string]*schema{
		"agent":     name(limits.AgentName, "Default: the step's."),
		"action":    name(limits.ActionName, "What the agent is asked to do. Only the http agent needs none."),
		"with":      {Description: "Default: the step's; an http undo must say its own."},
		"startBy":   duration("Default: the step's. At most %v.", limits.MaxStartBy),
		"timeout":   duration("At most %v; with a heartbeat 720h0m0s. Default: the step's, with its heartbeat.", limits.MaxTimeout),
		"heartbeat": duration("At most %v. Default: the step's, where the undo says no timeout.", limits.MaxTimeout),
		"retry":     {Ref: "#/$defs/retry"},
		"waiting":   {Ref: "#/$defs/waiting"},
	})
}

// waiting is what holds while a step waits, or its undo.
func waiting() *schema {
	names := func(description string) *schema {
		name := name(limits.ReplyName, "")
		return &schema{OneOf: []*schema{name, {Type: "array", MaxItems: limits.MaxAsked, UniqueItems: true, Items: name}}, Description: description}
	}
	moment := duration("At most %v.", makegood.MaxWait)
	return object(makegood.WaitRules{}, map[string]*schema{
		"ask": names("Registered names of the receivers that are told that the step waits, with its completion token."),
		"remind": {
			OneOf:       []*schema{moment, {Type: "array", MaxItems: limits.MaxReminders, Items: moment}},
			Description: "How long after it began to wait they are reminded.",
		},
		"escalate": object(makegood.Escalate{}, map[string]*schema{
			"after": duration("How long after it began to wait others are asked, too. At most %v.", makegood.MaxWait),
			"ask":   names("Receivers that are asked as well."),
		}, "after", "ask"),
		"onTimeout": {
			OneOf:       []*schema{{Const: "fail"}, object(makegood.OnTimeout{}, map[string]*schema{"output": {Description: "The output of the step."}}, "output")},
			Description: "What its deadline means: that the attempt has failed (the default), or that it is done, with an output.",
		},
	})
}

func retry() *schema {
	return object(makegood.Retry{}, map[string]*schema{
		"attempts": {
			Type: "integer", Minimum: 1, Maximum: limits.MaxAttempts,
			Description: "How many attempts there are at most, the first one counted too.",
		},
		"for":     duration("How long after the first failure it is tried again. At most %v.", limits.MaxRetryFor).or(domain.DefaultRetryFor),
		"backoff": duration("The longest wait before the first retry; it doubles with each. At most %v.", limits.MaxBackoff).or(domain.DefaultBackoff),
		"max":     duration("The longest wait before any retry. At most %v.", limits.MaxBackoff).or(domain.DefaultMax),
	})
}

// durationPattern is what makegood.ParseDuration reads; zero is refused in a file, but not here.
const durationPattern = `^(([0-9]+d)|([0-9]+d|\+)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

func duration(format string, most any) *schema {
	return &schema{Type: "string", Pattern: durationPattern, Description: fmt.Sprintf(format, most)}
}

// or returns the schema of a duration that has a default.
func (s *schema) or(d makegood.Duration) *schema {
	s.Default = d.String()
	return s
}

func onFailure() *schema {
	duration := durationPattern[1 : len(durationPattern)-1]
	return &schema{
		Type: "string", Pattern: `^(undo|stop|wait +` + duration + `|restart +[0-9]+( +wait +` + duration + `)?)$`,
		Description: fmt.Sprintf("The reaction when a step is given up: undo, stop, wait DURATION, or restart ROUNDS (undo, then try again from the start; 2 to %d rounds, the first one counted too) with wait DURATION before each new one (default %v). Default: undo where any step has one, else stop.", limits.MaxRounds, domain.DefaultRestartWait),
	}
}

// name is the schema of a name.
func name(of limits.NameOf, description string) *schema {
	return &schema{Type: "string", Pattern: "^" + of.Pattern() + "$", Description: description}
}
