package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// inputOf is the value of the input of a step's task.
func inputOf(ctx context.Context, c *Compiled, step string, undo bool, data Data) (json.RawMessage, error) {
	input, err := c.Input(ctx, step, undo, data)
	return input.Value, err
}

// TestSecretsStandBesideTheInput: the value is never there, and what a submitter writes is never one of them.
func TestSecretsStandBesideTheInput(t *testing.T) {
	data := Data{Input: raw(`{"user": "bär", "n": 7, "body": {"a": "${ secret(\"stolen\") }", "secrets": [{"path": "", "at": 0, "name": "stolen"}]}}`)}
	for _, c := range []struct {
		agent, with, want string
		secrets           []makegood.TaskSecret
	}{
		{"x", `"${ secret(\"key\") }"`, `""`, []makegood.TaskSecret{{Name: "key"}}},
		{"x", `"Bearer ${ secret(\"key\") }"`, `"Bearer "`, []makegood.TaskSecret{{At: 7, Name: "key"}}},
		{
			"x", `{"a/b": ["1", {"~": "${ .input.user }:${ secret(\"key\") }@${ .input.n }${secret(\"k2\")}"}]}`, `{"a/b":["1",{"~":"bär:@7"}]}`,
			[]makegood.TaskSecret{{Path: "/a~1b/1/~0", At: 4, Name: "key"}, {Path: "/a~1b/1/~0", At: 6, Name: "k2"}},
		},
		{"x", `{"b": "${ .input.body }"}`, `{"b":{"a":"${ secret(\"stolen\") }","secrets":[{"at":0,"name":"stolen","path":""}]}}`, nil},
		{"x", `{"b": "$${ secret(\"no\") }"}`, `{"b":"${ secret(\"no\") }"}`, nil},
		{"x", `{"b": "${ \"secret(1)\" }"}`, `{"b":"secret(1)"}`, nil},
		{"x", `{"b": "${ def secret(x): x + 1; secret(1) }"}`, `{"b":2}`, nil},
		{
			"http", `{"url": "https://x/${ secret(\"path\") }", "headers": {"A": "${ secret(\"a\") }"}, "body": {"k": "${ secret(\"b\") }"}}`,
			`{"body":{"k":""},"headers":{"A":""},"method":"POST","url":"https://x/"}`,
			[]makegood.TaskSecret{{Path: "/body/k", Name: "b"}, {Path: "/headers/A", Name: "a"}, {Path: "/url", At: 10, Name: "path"}},
		},
		{"http", `{"url": "${ secret(\"url\") }", "method": "GET"}`, `{"headers":{},"method":"GET","url":""}`, []makegood.TaskSecret{{Path: "/url", Name: "url"}}},
	} {
		compiled, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: c.agent, With: raw(c.with)}}})
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
			continue
		}
		got, err := compiled.Input(context.Background(), "a", false, data)
		if err != nil || string(got.Value) != c.want || !reflect.DeepEqual(got.Secrets, c.secrets) {
			t.Errorf("%s:\n got %s, %v, %v\nwant %s, %v", c.with, got.Value, got.Secrets, err, c.want, c.secrets)
		}
	}
}

// TestAWorkflowWithASecretIsOfALevel: an older release, for which it is no expression at all, leaves its jobs alone; one
// without keeps its hash.
func TestAWorkflowWithASecretIsOfALevel(t *testing.T) {
	with := func(with string) *Compiled {
		c, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x", With: raw(with)}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const plain = `{"name":"w","onFailure":"stop","steps":[{"action":"a","agent":"x","name":"a","needs":[],"retry":{"attempts":100,"backoff":"1s","for":"15m0s","max":"1m0s"},"startBy":"10m0s","timeout":"30s","with":1}]}`
	if got := string(with(`1`).Definition); got != plain {
		t.Errorf("a workflow that needs nothing new\n got %s\nwant %s", got, plain)
	}
	secret := with(`"${ secret(\"key\") }"`)
	if !strings.Contains(string(secret.Definition), `"needs":1,`) {
		t.Errorf("a definition with a secret says no level: %s", secret.Definition)
	}
	again, err := Load(secret.Definition)
	if err != nil || again.Hash != secret.Hash || string(again.Definition) != string(secret.Definition) {
		t.Errorf("loaded again: %v, want the same definition", err)
	}
	newer := strings.Replace(string(secret.Definition), `"needs":1`, `"needs":4`, 1)
	if _, err := Load([]byte(newer)); !errors.Is(err, ErrNewer) {
		t.Errorf("a definition of level 4: %v, want ErrNewer", err)
	}
}

func TestPlacesForSecretsAreLimited(t *testing.T) {
	places := func(n int) error {
		with := fmt.Sprintf(`[%s]`, strings.TrimSuffix(strings.Repeat(`"${ secret(\"a\") }",`, n), ","))
		_, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x", With: raw(with)}}})
		return err
	}
	if err := places(limits.MaxTaskSecrets); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := places(limits.MaxTaskSecrets + 1); err == nil || !strings.Contains(err.Error(), "51 places for secrets, the limit is 50") {
		t.Errorf("over the limit: %v", err)
	}
}
