package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// document is as much of OpenAPI as ours uses.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Format               string
	Enum                 []string
	OneOf                []schema
	Items                *schema
	Properties           map[string]schema
	Required             []string
	AdditionalProperties *bool
}

// wrong says what of a value is not as the schema has it.
func (d document) wrong(at string, s schema, value any) []string {
	if s.Ref != "" {
		named, ok := d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if !ok {
			return []string{at + ": no schema " + s.Ref}
		}
		return d.wrong(at, named, value)
	}
	if s.OneOf != nil {
		for _, one := range s.OneOf {
			if len(d.wrong(at, one, value)) == 0 {
				return nil
			}
		}
		return []string{fmt.Sprintf("%s: %v fits none of oneOf", at, value)}
	}
	switch v := value.(type) {
	case map[string]any:
		return d.wrongObject(at, s, v)
	case []any:
		if s.Type != "array" {
			return mismatch(at, s, value)
		}
		var found []string
		for i, item := range v {
			found = append(found, d.wrong(fmt.Sprintf("%s[%d]", at, i), *s.Items, item)...)
		}
		return found
	case string:
		if s.Type != "string" || s.Enum != nil && !slices.Contains(s.Enum, v) {
			return mismatch(at, s, value)
		}
		at, err := time.Parse(time.RFC3339, v)
		if s.Format == "date-time" && (err != nil || at.Location() != time.UTC) {
			return []string{fmt.Sprintf("%s: %q is not a time in UTC", at, v)}
		}
	case float64:
		if s.Type != "number" && (s.Type != "integer" || v != float64(int(v))) {
			return mismatch(at, s, value)
		}
	case bool:
		if s.Type != "boolean" {
			return mismatch(at, s, value)
		}
	case nil:
		if s.Type != "null" {
			return mismatch(at, s, value)
		}
	}
	return nil
}

func (d document) wrongObject(at string, s schema, v map[string]any) (found []string) {
	if s.Type != "object" {
		return mismatch(at, s, v)
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			found = append(found, at+": no "+name)
		}
	}
	for name, value := range v {
		property, ok := s.Properties[name]
		if !ok && s.AdditionalProperties != nil && !*s.AdditionalProperties {
			found = append(found, at+": "+name+" is not in the document")
		}
		if ok {
			found = append(found, d.wrong(at+"."+name, property, value)...)
		}
	}
	return found
}

// mismatch is what is said of a value of another type; a schema without a type fits any.
func mismatch(at string, s schema, value any) []string {
	if s.Type == "" && s.Enum == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: got %v, want %s %v", at, value, s.Type, s.Enum)}
}

var errSecret = errors.New("disk /dev/secret is full")

// publication publishes a workflow.
const publication = `{"source":"name: published\nsteps: [{name: a, agent: actor}]\n"}`

// conversation is a request, and the status that it must get.
type conversation struct {
	method, route, path, body string
	// header is "Name: value", or several of them in lines.
	header string
	status int
}

// conversations are at least one for each status that the document has for each route, apart from
// those of a broken store and of a foreign host.
func conversations() []conversation {
	large := `{"workflow":"order","input":"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"}`
	all := []conversation{
		{"POST", "/api/jobs", "/api/jobs", `{"workflow":"order","id":"done","input":{"n":1}}`, "", 201},
		{"POST", "/api/jobs", "/api/jobs", `{"workflow":"order","id":"done","input":{"n": 1}}`, "", 200},
		{"POST", "/api/jobs", "/api/jobs", `{"workflow":"order","id":"done","input":{"n":2}}`, "", 409},
		{"POST", "/api/jobs", "/api/jobs", `{"workflow":"nobody","input":1}`, "", 400},
		{"POST", "/api/jobs", "/api/jobs", `{}`, "Content-Type: text/plain", 415},
		{"POST", "/api/jobs", "/api/jobs", ``, "Content-Type: ", 415},
		{"POST", "/api/jobs", "/api/jobs", `{}`, "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/api/jobs", "/api/jobs", large, "", 413},
		{"GET", "/api/jobs", "/api/jobs?state=Error&workflow=order&limit=200", "", "", 200},
		{"GET", "/api/jobs", "/api/jobs?limit=201", "", "", 400},
		{"GET", "/api/jobs/{id}", "/api/jobs/done", "", "", 200},
		{"GET", "/api/jobs/{id}", "/api/jobs/undone?payloads=false", "", "", 200},
		{"GET", "/api/jobs/{id}", "/api/jobs/held", "", "", 200},
		{"GET", "/api/jobs/{id}", "/api/jobs/failed", "", "", 200},
		{"GET", "/api/jobs/{id}", "/api/jobs/done?payloads=perhaps", "", "", 400},
		{"GET", "/api/jobs/{id}", "/api/jobs/nobody", "", "", 404},
		{"GET", "/api/workflows", "/api/workflows", "", "", 200},
		{"POST", "/api/workflows", "/api/workflows", publication, "", 200},
		{"POST", "/api/workflows", "/api/workflows", `{"source":"name: x"}`, "", 400},
		{"POST", "/api/workflows", "/api/workflows", publication, "Content-Type: text/plain", 415},
		{"POST", "/api/workflows", "/api/workflows", publication, "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/api/workflows", "/api/workflows", `{"source":"` + strings.Repeat("x", 3<<20) + `"}`, "", 413},
		{"GET", "/api/counts", "/api/counts?by=workflow,state&workflow=order&label=a%3Db&label=c%3Dd", "", "", 200},
		{"GET", "/api/counts", "/api/counts?by=colour", "", "", 400},
		{"GET", "/api/errors", "/api/errors", "", "", 200},
		{"GET", "/api/errors", "/api/errors?by=workflow", "", "", 400},
		{"GET", "/api/audit", "/api/audit", "", "", 200},
		{"GET", "/api/audit", "/api/audit?cursor=of-no-page", "", "", 400},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/done/wake", `{}`, "", 200},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", ``, "", 200},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", ``, "Content-Type: ", 200},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/nobody/wake", `{}`, "", 404},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", `{"why":1}`, "", 400},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", `{}`, "Content-Type: text/plain", 415},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", `{}`, "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/api/jobs/{id}/wake", "/api/jobs/held/wake", large, "", 413},
		{"GET", "/api/openapi.json", "/api/openapi.json", "", "", 200},
		{"GET", "/healthz", "/healthz", "", "", 200},
	}
	for name, body := range map[string]string{
		"tasks": `{"instance":"p-1","wait":10,"max":10,"request":"r-1"}`, "replies": `{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1}`,
		"heartbeats": `{"job":"j","step":"s","attempt":1,"token":"t","lockedBy":"l"}`,
	} {
		route, at := "/api/agents/{agent}/"+name, func(agent string) string { return "/api/agents/" + agent + "/" + name }
		all = append(all,
			conversation{"POST", route, at("pilot"), body, "", 200},
			conversation{"POST", route, at("pilot"), `{}`, "", 400},
			conversation{"POST", route, at("guarded"), body, "", 401},
			conversation{"POST", route, at("pilot"), body, "Sec-Fetch-Site: cross-site", 403},
			conversation{"POST", route, at("nobody"), body, "", 404},
			conversation{"POST", route, at("pilot"), strings.Repeat(" ", 2<<20), "", 413},
			conversation{"POST", route, at("pilot"), body, "Content-Type: text/plain", 415},
		)
	}
	all = append(all, completions()...)
	all = append(all, slices.Concat(settlements(), offering(), defining())...)
	for _, verb := range domain.Verbs() {
		route := "/api/jobs/{id}/" + string(verb)
		granted := map[makegood.Verb]string{makegood.VerbResubmit: "failed", makegood.VerbPause: "held", makegood.VerbResume: "held", makegood.VerbRedo: "again", makegood.VerbForward: "turned", makegood.VerbRedrive: "lacking"}[verb]
		if granted == "" {
			granted = "held"
		}
		refused := map[makegood.Verb]string{makegood.VerbUndo: "cancelled", makegood.VerbRedo: "cancelled"}[verb]
		if refused == "" {
			refused = "done"
		}
		at := func(id string) string { return "/api/jobs/" + id + "/" + string(verb) }
		switch verb {
		case makegood.VerbReschedule:
			all = append(all, rescheduling(route, at)...)
			continue
		case makegood.VerbEdit:
			all = append(all, editing(route, at)...)
			continue
		case makegood.VerbResubmit:
			all = append(all, resubmitting(route, at)...)
			all = append(all, resubmitting("/api/jobs/{id}/plan", func(id string) string { return "/api/jobs/" + id + "/plan" })...)
			continue
		}
		all = append(all,
			conversation{"POST", route, at(granted), `{"reason":"why not","request":"r1"}`, "", 200},
			conversation{"POST", route, at(granted), `{"request":"r1"}`, "", 200},
			conversation{"POST", route, at(refused), ``, "", 409},
			conversation{"POST", route, at(refused), ``, "Content-Type: ", 409},
			conversation{"POST", route, at("held"), ``, "Sec-Fetch-Site: cross-site", 403},
			conversation{"POST", route, at("held"), `{}`, "Content-Type: ", 415},
			conversation{"POST", route, at("nobody"), `{}`, "", 404},
			conversation{"POST", route, at("held"), `{"why":1}`, "", 400},
			conversation{"POST", route, at("held"), `{}`, "Content-Type: text/plain", 415},
			conversation{"POST", route, at("held"), `{}`, "Sec-Fetch-Site: cross-site", 403},
			conversation{"POST", route, at("held"), large, "", 413},
		)
	}
	all = slices.Concat(all, scheduleConversations(), holdConversations(), agentConversations(), quarantineConversations())
	// Pause comes before resume, and what turns a job round comes last.
	slices.SortStableFunc(all, func(a, b conversation) int { return rank(a.route) - rank(b.route) })
	return all
}

// completions are the conversations about steps that wait. TOKEN(job) stands for the completion token of the job's step sign.
func completions() (all []conversation) {
	large := `{"output":"` + strings.Repeat("x", 2*makegood.MaxPayloadBytes) + `"}`
	type says struct{ verb, job, takes, refused string }
	address, token := "/api/jobs/{id}/steps/{step}/", "/api/completions/"
	for _, s := range []says{
		{"complete", "sign-1", `"output":"yes"`, `"output":"no"`},
		{"fail", "sign-2", `"error":{"message":"nobody is there"}`, `"error":{"message":"and nobody comes"}`},
		{"heartbeat", "sign-3", `"deadline":"2999-01-01T00:00:00Z"`, ""},
	} {
		at := func(id, step string) string { return "/api/jobs/" + id + "/steps/" + step + "/" + s.verb }
		post := func(route, path, body, header string, status int) {
			all = append(all, conversation{"POST", route + s.verb, path, body, header, status})
		}
		held := func(id, more string) string { return `{"completion":"TOKEN(` + id + `)"` + more + `}` }
		body := "{" + s.takes + "}"
		post(address, at(s.job, "sign"), body, "", 200)
		post(address, at("done", "charge"), body, "", 409)
		post(address, at("nobody", "sign"), body, "", 404)
		post(address, at(s.job, "sign"), `{"why":1}`, "", 400)
		post(address, at(s.job, "sign"), body, "Content-Type: text/plain", 415)
		post(address, at(s.job, "sign"), body, "Sec-Fetch-Site: cross-site", 403)
		post(address, at(s.job, "sign"), large, "", 413)
		post(token, token+s.verb, held("t-"+s.job, ","+s.takes), "", 200)
		post(token, token+s.verb, held("cancelled-sign", ","+s.takes), "", 409)
		post(token, token+s.verb, held("nobody", ","+s.takes), "", 404)
		post(token, token+s.verb, `{"completion":"x",`+s.takes+`}`, "", 400)
		post(token, token+s.verb, body, "Content-Type: text/plain", 415)
		post(token, token+s.verb, body, "Sec-Fetch-Site: cross-site", 403)
		post(token, token+s.verb, large, "", 413)
		if s.refused != "" {
			post(token, token+s.verb, held("t-"+s.job, ","+s.refused), "", 409)
		}
	}
	return all
}

func rank(route string) int {
	switch {
	case strings.HasSuffix(route, "/resume"):
		return 1
	case strings.HasSuffix(route, "/undo"):
		return 2
	case strings.HasSuffix(route, "/cancel"), strings.HasSuffix(route, "/remove"):
		return 3
	}
	return 0
}

// Every status that the document has is got, every answer has the fields that the document says, and
// nothing is answered that is not in it.
func TestEveryRouteAnswersAsTheDocumentSays(t *testing.T) {
	w := newWorld(t)
	w.quarantine("not one of ours", "nor this")
	w.submit("stop", "failed", `{"reserve":"fail"}`)
	w.submit("stop", "cancelled", `{"reserve":"fail"}`)
	w.submit("order", "undone", `{"charge":"fail"}`)
	w.submit("order", "held", `{"charge":"hold"}`)
	w.submit("order", "again", `{"charge":"hold"}`)
	w.submit("order", "turned", `{"charge":"deny","release":"deny"}`)
	w.submit("lines", "lacking", `{"lines":[{"reserve":"fail"},{}]}`)
	w.until("lacking", in(makegood.JobProcessed))
	w.submit("voyage", "sails", `{}`)
	_, err := w.client.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "later", Input: json.RawMessage(`{}`), StartAt: time.Now().Add(2 * time.Hour)})
	check(t, err)
	w.until("failed", in(makegood.JobError))
	w.until("cancelled", in(makegood.JobError))
	w.until("undone", in(makegood.JobUndone))
	w.until("turned", in(makegood.JobError))
	w.until("held", func(j makegood.Job) bool { return j.Steps[1].State == makegood.StepClaimed })
	for _, id := range []string{"sign-1", "sign-2", "sign-3", "t-sign-1", "t-sign-2", "t-sign-3", "cancelled-sign"} {
		w.submit("sign", id, `{}`)
	}
	tokens := strings.NewReplacer(w.tokens("sign-1", "t-sign-1", "t-sign-2", "t-sign-3", "cancelled-sign")...)
	for _, id := range []string{"cancelled", "cancelled-sign"} {
		_, err := w.client.Request(t.Context(), id, api.Request{Verb: makegood.VerbCancel})
		check(t, err)
		w.until(id, in(makegood.JobCancelled))
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	fails := broken{errSecret}.parts()
	fails.Publish = func(context.Context, *workflowfile.Compiled) error { return errSecret }
	fails.Timetable, fails.Quarantine, fails.Holds = brokenSchedules(errSecret), brokenQuarantine{errSecret}, brokenHolds(errSecret)
	fails.Agents, fails.Totals = w.engine, broken{errSecret}
	failing := listen(t, httpapi.Config{Jobs: control.New(fails), Logger: quiet, Outside: brokenDoor{errSecret}})
	errDamaged := fmt.Errorf("%w: %w", store.ErrDamaged, errSecret)
	spoilt := broken{errDamaged}.parts()
	spoilt.Timetable, spoilt.Quarantine, spoilt.Holds = brokenSchedules(errDamaged), brokenQuarantine{errDamaged}, brokenHolds(errDamaged)
	damaged := listen(t, httpapi.Config{Jobs: control.New(spoilt), Logger: quiet})

	d := readDocument(t, w)
	got := map[string]bool{}
	talk := func(base string, c conversation) reply {
		t.Helper()
		r := ask(t, c.method, base+c.path, tokens.Replace(c.body), strings.Split(c.header, "\n")...)
		name := fmt.Sprintf("%s %s %d", c.method, c.route, r.status)
		got[name] = true
		if r.status != c.status {
			t.Errorf("%s %s %.100s: got %d %s, want %d", c.method, c.path, c.body, r.status, r.body, c.status)
		}
		for _, w := range d.wrongAnswer(c, r) {
			t.Errorf("%s: %s", name, w)
		}
		return r
	}
	for _, c := range conversations() {
		if strings.Contains(c.path, "tripped") {
			_, err := w.engine.Parts().Holds.Trip(t.Context(), "tripped", "it is down")
			check(t, err)
		}
		talk(w.url, c)
		if c.path == "/api/jobs" && c.status == 201 {
			w.until("done", in(makegood.JobProcessed))
		}
		if strings.Contains(c.path, "cancelled") {
			continue
		}
		if c.header == "" && c.status < 300 && c.route != "/api/openapi.json" {
			if r := talk(failing, with(c, "", http.StatusServiceUnavailable)); r.header.Get("Retry-After") == "" || strings.Contains(string(r.body), "secret") {
				t.Errorf("a broken store: got %v %s, want Retry-After and no internals", r.header, r.body)
			}
			if strings.Contains(c.route, "{id}") {
				talk(damaged, with(c, "", http.StatusInternalServerError))
			}
		}
		talk(w.url, with(c, "Host: evil.example", http.StatusMisdirectedRequest))
	}
	// A stack's quarantine is not behind its doors.
	for _, route := range []string{"/api/quarantine", "/api/agents", "/api/totals"} {
		talk(listen(t, httpapi.Config{Jobs: bare(w.engine), Logger: quiet}), conversation{"GET", route, route, "", "", http.StatusNotFound})
	}
	// Only a deployed stack has workflows published.
	talk(damaged, conversation{"POST", "/api/workflows", "/api/workflows", publication, "", http.StatusNotFound})
	busy := listen(t, httpapi.Config{Jobs: control.New(broken{errSecret}.parts()), Logger: quiet, Outside: brokenDoor{agentdoor.ErrBusy}})
	r := talk(busy, conversation{"POST", "/api/agents/{agent}/tasks", "/api/agents/pilot/tasks", `{"instance":"p-1"}`, "", http.StatusTooManyRequests})
	if r.header.Get("Retry-After") == "" {
		t.Errorf("too many who wait: got %v, want Retry-After", r.header)
	}
	talkOfPayloads(w, talk)
	talkOfAgentPayloads(w, talk)
	// The document itself needs no store.
	got["GET /api/openapi.json 503"] = true
	for _, missing := range d.missing(got) {
		t.Errorf("the document has %s, and it was never got", missing)
	}
}

func with(c conversation, header string, status int) conversation {
	c.header, c.status = header, status
	return c
}

func readDocument(t *testing.T, w *world) (d document) {
	t.Helper()
	check(t, json.Unmarshal(ask(t, "GET", w.url+"/api/openapi.json", "").body, &d))
	if len(d.Paths) < 8 {
		t.Fatalf("the document has %d paths, which cannot be all", len(d.Paths))
	}
	return d
}

func (d document) wrongAnswer(c conversation, r reply) []string {
	response, ok := d.Paths[c.route][strings.ToLower(c.method)].Responses[strconv.Itoa(r.status)]
	if !ok {
		return []string{"this status is not in the document"}
	}
	kind := r.header.Get("Content-Type")
	if _, is := response.Content[kind]; !is {
		return []string{"it is " + kind}
	}
	if kind != "application/json" {
		return nil // bytes of anything
	}
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		return []string{err.Error()}
	}
	return d.wrong("body", response.Content["application/json"].Schema, value)
}

// missing lists what the document has and nobody got.
func (d document) missing(got map[string]bool) []string {
	all := map[string]bool{}
	for path, operations := range d.Paths {
		for method, o := range operations {
			for status := range o.Responses {
				all[fmt.Sprintf("%s %s %s", strings.ToUpper(method), path, status)] = true
			}
		}
	}
	maps.DeleteFunc(all, func(name string, _ bool) bool { return got[name] })
	return slices.Sorted(maps.Keys(all))
}
