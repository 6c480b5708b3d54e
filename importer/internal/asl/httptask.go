package asl

import (
	"fmt"
	"strings"
)

// httpTask makes a step of the built-in agent http.
func (w walk) httpTask(here comes, r resource) {
	with := func(effective *value) *value {
		names, parts := []string{"method", "url"}, []*value{w.member(effective, "Method"), w.url(effective)}
		headers := w.member(effective, "Headers")
		if w.state.body.get(w.state.calledWith()).get("Authentication") != nil || w.state.body.get(w.state.calledWith()).get("InvocationConfig") != nil {
			headers = w.authorized(headers)
		}
		if !isAbsent(headers) {
			names, parts = append(names, "headers"), append(parts, headers)
		}
		if body := w.member(effective, "RequestBody"); !isAbsent(body) {
			names, parts = append(names, "body"), append(parts, body)
		}
		return w.object(names, parts)
	}
	w.tell(w.state).note("the output of an http step is the body of the answer: of the answer only ResponseBody can be read")
	w.task(here, r, with, func(output *value) *value {
		return w.object([]string{"ResponseBody", "StatusCode"}, []*value{output, w.constant("200")})
	})
}

// calledWith names the field that says what a task is called with.
func (s *state) calledWith() string {
	if s.jsonata {
		return "Arguments"
	}
	return "Parameters"
}

func isAbsent(v *value) bool { return v.form == formConstant && v.text == "null" }

// url is the endpoint with its query.
func (w walk) url(effective *value) *value {
	endpoint := w.member(effective, "ApiEndpoint")
	query := w.member(effective, "QueryParameters")
	if isAbsent(query) {
		return endpoint
	}
	if query.form != formObject {
		w.tell(w.state).left("QueryParameters are translated where their names are written out: add them to the url")
		return endpoint
	}
	parts := pieces(endpoint)
	for i, name := range query.names {
		sign := "&"
		if i == 0 {
			sign = "?"
		}
		parts = append(parts, w.text(sign+name+"="), w.jq("%s | tostring | @uri", w.operand(query.parts[i])))
	}
	return w.joined(parts)
}

// authorized adds what the connection did.
func (w walk) authorized(headers *value) *value {
	secret := w.stepSecret()
	w.tell(w.state).note(fmt.Sprintf("the connection that authenticated is a header Authorization with the secret %q here: set it as the service wants it (docs/expressions.md)", secret))
	add := w.make(value{form: formSecret, text: secret})
	if isAbsent(headers) {
		return w.object([]string{"Authorization"}, []*value{add})
	}
	return w.set(headers, []string{"Authorization"}, add)
}

// stepSecret is the name of the secret of an http step.
func (w walk) stepSecret() string {
	connection := w.state.body.get(w.state.calledWith()).get("Authentication").textOf("ConnectionArn")
	if _, name, found := strings.Cut(connection, ":connection/"); found {
		connection, _, _ = strings.Cut(name, "/")
	}
	if name := snake(placeholder(connection)); name != "" && !strings.HasPrefix(name, "arn_") {
		return name
	}
	return "connection"
}
