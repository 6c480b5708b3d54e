package httpapi_test

import (
	"strings"

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
