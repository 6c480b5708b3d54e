package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What docs/agents-in-other-languages.md shows of the protocol is sent to an engine, and answered with the fields that it shows.
func TestTheProtocolForAgentsIsAsTheDocsSay(t *testing.T) {
	text, err := os.ReadFile("../../docs/agents-in-other-languages.md")
	check(t, err)
	w := newOutside(t)
	w.submit("f-1")
	var token, lockedBy string
	shown := 0
	for _, block := range strings.Split(string(text), "```\nPOST ")[1:] {
		block, _, _ := strings.Cut(block, "\n```")
		asked, answered, _ := strings.Cut(block, "\n\n200\n")
		path, body, _ := strings.Cut(asked, "\n")
		if shown++; strings.HasSuffix(path, "/replies") {
			payloadsAsShown(t, w, string(text), strings.NewReplacer("TOKEN", token, "LOCKEDBY", lockedBy))
		}
		var got, want map[string]any
		check(t, json.Unmarshal([]byte(answered), &want))
		body = strings.NewReplacer("TOKEN", token, "LOCKEDBY", lockedBy).Replace(body)
		if status, text := w.post(path, "", body, &got); status != 200 {
			t.Fatalf("%s %s: got %d %s", path, body, status, text)
		}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) || got["status"] != want["status"] {
			t.Errorf("%s: got %v, the docs show %v", path, got, want)
		}
		if tasks, _ := got["tasks"].([]any); len(tasks) == 1 {
			one := tasks[0].(map[string]any)
			example := want["tasks"].([]any)[0].(map[string]any)
			if names := slices.Sorted(maps.Keys(one)); !slices.Equal(names, slices.Sorted(maps.Keys(example))) {
				t.Errorf("a task has %v, the docs show %v", names, example)
			}
			token, lockedBy = one["task"].(map[string]any)["token"].(string), one["lockedBy"].(string)
		}
	}
	if shown != 3 || token == "" {
		t.Errorf("the docs show %d requests, want all 3, and a task", shown)
	}
}

// payloadsAsShown writes and reads the payload that the docs show, before its attempt ends.
func payloadsAsShown(t *testing.T, w *outside, text string, held *strings.Replacer) {
	t.Helper()
	for _, method := range []string{"PUT", "GET"} {
		_, block, found := strings.Cut(text, "```\n"+method+" ")
		block, _, _ = strings.Cut(block, "\n```")
		asked, answered, _ := strings.Cut(block, "\n\n20")
		head, body, _ := strings.Cut(asked, "\n\n")
		path, headers, _ := strings.Cut(head, "\n")
		r := ask(t, method, w.url+path, body, strings.Split(held.Replace(headers), "\n")...)
		if got := fmt.Sprintf("%d\n%s", r.status, bytes.TrimSpace(r.body)); !found || got != "20"+answered && !sameJSON(t, got, "20"+answered) {
			t.Errorf("%s %s: got %s, the docs show 20%s", method, path, got, answered)
		}
	}
}

// sameJSON reports whether two answers are the same, their status and their JSON.
func sameJSON(t *testing.T, got, want string) bool {
	t.Helper()
	var values [2]any
	for i, answer := range []string{got, want} {
		status, body, _ := strings.Cut(answer, "\n")
		if json.Unmarshal([]byte(body), &values[i]) != nil {
			return false
		}
		values[i] = []any{status, values[i]}
	}
	return reflect.DeepEqual(values[0], values[1])
}
