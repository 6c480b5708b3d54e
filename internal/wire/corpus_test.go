package wire

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rewrite saves how the messages of the corpus are read. Only a new message may need it: how one of a release is read
// must never change.
var rewrite = flag.Bool("rewrite", false, "save the readings of the corpus")

// messages are those of the corpus of format 1: every kind, with all its fields, as the first release wrote it.
func messages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/format-1/*.json")
	if err != nil || len(files) < 9 {
		t.Fatalf("got %d messages, %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = strings.TrimSpace(string(body))
	}
	return all
}

// reading is what the code that reads the queues understands.
func reading(body string) any {
	switch {
	case strings.Contains(body, `"type":"Task"`):
		task, err := DecodeTask(body)
		return said(task, err)
	case strings.Contains(body, `"type":"Announcement"`):
		job, workflow, a, err := DecodeAnnouncement(body)
		return said(map[string]any{"job": job, "workflow": workflow, "announcement": a}, err)
	default:
		in, err := DecodeIncoming(body)
		return said(map[string]any{"job": in.Job, "kind": strings.TrimPrefix(fmt.Sprintf("%T", in.Event), "job."), "event": in.Event, "submit": in.Submit}, err)
	}
}

func said(what any, err error) string {
	text, jsonErr := json.MarshalIndent(what, "", "  ")
	return fmt.Sprintf("%s\nerrors: %v, %v\n", text, err, jsonErr)
}

// Every later release reads what the first one wrote, and as the first one read it (law 12).
func TestTheMessagesOfFormat1AreReadAsTheyWere(t *testing.T) {
	for file, body := range messages(t) {
		got := reading(body).(string)
		saved := strings.TrimSuffix(file, ".json") + ".read"
		if *rewrite {
			if err := os.WriteFile(saved, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(saved)
		if err != nil || got != string(want) {
			t.Errorf("%s was read as\n%s\nwant, %v,\n%s", file, got, err, want)
		}
		if !strings.Contains(got, "errors: <nil>, <nil>") {
			t.Errorf("%s cannot be read: %s", file, got)
		}
	}
}
