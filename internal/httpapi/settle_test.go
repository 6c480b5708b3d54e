package httpapi_test

import (
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// settlements are the conversations about steps that a person has dealt with.
func settlements() (all []conversation) {
	post := func(path, body, header string, status int) {
		all = append(all, conversation{"POST", "/api/jobs/{id}/steps/{step}/settle", "/api/jobs/" + path + "/settle", body, header, status})
	}
	const body = `{"as":"done","output":{"n":1},"reason":"by hand","request":"r1"}`
	post("later/steps/charge", body, "", 200)
	post("later/steps/charge", body, "", 200)
	post("later/steps/charge", `{"as":"skipped","reason":"no"}`, "", 409)
	post("held/steps/charge", body, "", 409)
	post("done/steps/charge", body, "", 409)
	post("nobody/steps/charge", body, "", 404)
	post("held/steps/charge", `{}`, "", 400)
	post("held/steps/charge", `{"as":"skipped"}`, "", 400)
	post("held/steps/charge", `{"as":"done","why":1}`, "", 400)
	post("held/steps/charge", body, "Content-Type: text/plain", 415)
	post("held/steps/charge", body, "Sec-Fetch-Site: cross-site", 403)
	post("held/steps/charge", `{"as":"done","output":"`+strings.Repeat("x", 2*makegood.MaxPayloadBytes)+`"}`, "", 413)
	return all
}

// resubmitting are the conversations about jobs that go on, and about what that would do.
func resubmitting(route string, at func(id string) string) (all []conversation) {
	post := func(id, body, header string, status int) {
		all = append(all, conversation{"POST", route, at(id), body, header, status})
	}
	post("failed", `{"definition":"none"}`, "", 409)
	post("failed", `{"definition":"`+strings.Repeat("x", 129)+`"}`, "", 400)
	post("failed", `{"input":{"a":1,"a":2}}`, "", 400)
	post("failed", `{"definition":"current","input":{"reserve":"fail"},"reason":"why not","request":"r1"}`, "", 200)
	post("failed", `{"request":"r1"}`, "", 200)
	post("done", ``, "", 409)
	post("done", ``, "Content-Type: ", 409)
	post("nobody", `{}`, "", 404)
	post("held", `{"why":1}`, "", 400)
	post("held", `{"request":"two words"}`, "", 400)
	post("held", `{}`, "Content-Type: text/plain", 415)
	post("held", `{}`, "Sec-Fetch-Site: cross-site", 403)
	post("held", `{"input":"`+strings.Repeat("x", 2*makegood.MaxPayloadBytes)+`"}`, "", 413)
	return all
}

// editing are the conversations about the timeout of a job.
func editing(route string, at func(id string) string) (all []conversation) {
	post := func(id, body, header string, status int) {
		all = append(all, conversation{"POST", route, at(id), body, header, status})
	}
	const body = `{"timeout":"9h","reason":"it is slow","request":"r1"}`
	post("held", body, "", 200)
	post("held", body, "", 200)
	post("done", body, "", 409)
	post("nobody", body, "", 404)
	post("held", `{}`, "", 400)
	post("held", ``, "", 400)
	post("held", `{"timeout":"soon"}`, "", 400)
	post("held", `{"timeout":"400d"}`, "", 400)
	post("held", body, "Content-Type: text/plain", 415)
	post("held", body, "Sec-Fetch-Site: cross-site", 403)
	post("held", `{"timeout":"`+strings.Repeat("x", 2*makegood.MaxPayloadBytes)+`"}`, "", 413)
	return all
}

// rescheduling are the conversations about the start of a job.
func rescheduling(route string, at func(id string) string) []conversation {
	const body = `{"startAt":"2999-01-01T00:00:00Z","request":"r1"}`
	soon := `{"startAt":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`
	large := `{"request":"` + strings.Repeat("x", 2*makegood.MaxPayloadBytes) + `"}`
	return []conversation{
		{"POST", route, at("later"), soon, "", 200},
		{"POST", route, at("later"), soon, "", 200},
		{"POST", route, at("later"), body, "", 409},
		{"POST", route, at("held"), soon, "", 409},
		{"POST", route, at("nobody"), soon, "", 404},
		{"POST", route, at("later"), `{}`, "", 400},
		{"POST", route, at("later"), ``, "", 400},
		{"POST", route, at("later"), `{"startAt":"soon"}`, "", 400},
		{"POST", route, at("later"), `{"why":1}`, "", 400},
		{"POST", route, at("later"), soon, "Content-Type: text/plain", 415},
		{"POST", route, at("later"), soon, "Sec-Fetch-Site: cross-site", 403},
		{"POST", route, at("later"), large, "", 413},
	}
}
