package httprules

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckSaysWhatIsWrongWithARequestAndWhere(t *testing.T) {
	const url = `"url": "https://a.example/x"`
	for _, c := range []struct{ with, want string }{
		{`{` + url + `}`, ``},
		{`{` + url + `, "method": "GET", "headers": {"X-A": "1", "X-B": "${ .input.b }"}, "body": [1]}`, ``},
		{`{"url": "${ .input.url }", "method": "${ .input.method }", "headers": "${ .input.headers }"}`, ``},
		{``, `: an http step must say its request: with must be an object with a url`},
		{`null`, `: an http step must say its request: with must be an object with a url`},
		{`"${ .input }"`, `: an http step must say its request: with must be an object with a url`},
		{`[1]`, `: an http step must say its request: with must be an object with a url`},
		{`{"method": "GET"}`, `: an http request must have a url`},
		{`{"url": ""}`, `url: a url must be a string that is not empty`},
		{`{"url": null}`, `url: a url must be a string that is not empty`},
		{`{"url": "a.example/x"}`, `url: "a.example/x" is not a whole http or https address`},
		{`{"url": "file:///etc/passwd"}`, `url: "file:///etc/passwd" is not a whole http or https address`},
		{`{"url": "http://"}`, `url: "http://" is not a whole http or https address`},
		{`{"url": "http://a b/"}`, `url: "http://a b/" is not a whole http or https address`},
		{`{` + url + `, "Body": 1, "timeout": 5}`, "Body: an http request has no \"Body\": known are method, url, headers and body\ntimeout: an http request has no \"timeout\": known are method, url, headers and body"},
		{`{` + url + `, "method": "get"}`, `method: "get" is not a method: want one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{` + url + `, "method": "CONNECT"}`, `method: "CONNECT" is not a method: want one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{` + url + `, "method": 1}`, `method: 1 is not a method: want one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{` + url + `, "headers": ["a"]}`, `headers: headers must be an object of strings`},
		{`{` + url + `, "headers": null}`, `headers: headers must be an object of strings`},
		{`{` + url + `, "headers": "plain"}`, `headers: headers must be an object of strings`},
		{`{` + url + `, "headers": {"X-B": 1, "X-A": true}}`, "headers.X-A: a header must be a string: put it in quotes\nheaders.X-B: a header must be a string: put it in quotes"},
	} {
		var lines []string
		for _, p := range Check(json.RawMessage(c.with)) {
			lines = append(lines, p.Path+": "+p.Message)
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("with %s:\n got %s\nwant %s", c.with, got, c.want)
		}
	}
}

// What expressions gave is checked as what a workflow says, and what was left out is filled in.
func TestARequestIsCompletedOrSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ values, want, wrong string }{
		{`{"url": "https://a.example/x"}`, `{"body":{"n":1},"headers":{},"method":"POST","url":"https://a.example/x"}`, ``},
		{`{"url": "u", "method": "GET"}`, `{"headers":{},"method":"GET","url":"u"}`, ``},
		{`{"url": "u", "method": "HEAD", "body": null}`, `{"body":null,"headers":{},"method":"HEAD","url":"u"}`, ``},
		{`{"url": "u", "method": "get"}`, ``, `method: a method must be one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{"url": "u", "method": null}`, ``, `method: a method must be one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{`{}`, ``, `url: a url must be a string that is not empty`},
		{`{"url": 1}`, ``, `url: a url must be a string that is not empty`},
		{`{"url": "u", "headers": null}`, ``, `headers: headers must be an object of strings`},
		{`{"url": "u", "headers": {"X-A": 1}}`, ``, `headers: headers must be an object of strings`},
	} {
		var values map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		got, wrong := Request(values, json.RawMessage(`{"n":1}`), false)
		said := ""
		if wrong != nil {
			said = wrong.Path + ": " + wrong.Message
		}
		if string(got) != c.want || said != c.wrong {
			t.Errorf("%s: got %s, %q, want %s, %q", c.values, got, said, c.want, c.wrong)
		}
	}
}
