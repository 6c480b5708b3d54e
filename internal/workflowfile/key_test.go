package workflowfile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

func TestAKeyIsOneExpressionOverTheInput(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "want one expression",
		"account":                   "want one expression",
		"a-${ .input.account }":     "want one expression",
		"${ .input.a }${ .input.b}": "want one expression",
		"${ .steps.a.output }":      ".steps is unknown: known are .input",
		"${ .job.id }":              ".job is unknown: known are .input",
		"${ .input. }":              "key: ${ .input. }",
		"${ now }":                  "now",
		`${ secret("a") }`:          "",
		"${ .input.account":         "key:",
		"${ .input." + strings.Repeat("a", 1024) + " }": "the limit is 1024",
	} {
		if _, err := workflowfile.CompileKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q in it", text, err, want)
		}
	}
}

func TestAKeyHasOneHashForEachValue(t *testing.T) {
	key, err := workflowfile.CompileKey("${ .input.account }")
	if err != nil {
		t.Fatal(err)
	}
	of := func(input string) string {
		t.Helper()
		hash, err := key.Of(t.Context(), []byte(input))
		if err != nil || len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
			t.Fatalf("%s: got %q, %v, want 32 hexadecimal digits", input, hash, err)
		}
		return hash
	}
	seen := map[string]string{}
	for _, alike := range [][]string{
		{`{"account":"a"}`, `{"b":1,"account":"a"}`},
		{`{"account":"b"}`},
		{`{"account":1}`, `{"account":1.0}`, `{"account":1e0}`, `{"account":100E-2}`, `{"account":0.1e+1}`},
		{`{"account":"1"}`},
		{`{"account":"1.0"}`},
		{`{"account":10}`, `{"account":1e1}`},
		{`{"account":-1}`, `{"account":-1.0}`},
		{`{"account":0}`, `{"account":-0.0}`, `{"account":0e9}`},
		{`{"account":12345678901234567890}`, `{"account":1234567890123456789e1}`},
		{`{"account":12345678901234567891}`},
		{`{"account":["1.0",1,"\"1.0"]}`, `{"account":["1.0",1.0,"\"1.0"]}`},
		{`{"account":["1",1,"\"1.0"]}`},
		{`{"account":{"x":1,"y":2}}`, `{"account":{"y":2,"x":1}}`},
		{`{"account":null}`, `{}`, `null`, ``, `7`, `[]`, `"a"`},
	} {
		first := of(alike[0])
		if other, is := seen[first]; is {
			t.Errorf("%s has the hash of %s", alike[0], other)
		}
		seen[first] = alike[0]
		for _, input := range alike[1:] {
			if of(input) != first {
				t.Errorf("%s has another hash than %s", input, alike[0])
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := key.Of(ended, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the context", err)
	}
}
