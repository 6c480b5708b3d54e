package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/wire"
)

// What lies here is what the code gives now, and nothing else.
func TestTheSavedEventsAreThoseOfTheCode(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, place := range []string{savedEvents, folder} {
		files, err := filepath.Glob(filepath.Join(place, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			names = append(names, filepath.Base(file))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		got, err := os.ReadFile(filepath.Join(savedEvents, name))
		if err != nil {
			t.Errorf("%v: run go generate ./lab/e2e/events", err)
			continue
		}
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Errorf("%s is of no case: %v", name, err)
		} else if string(got) != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s\nrun go generate ./lab/e2e/events", name, got, want)
		}
	}
}

// The functions are those of template.yaml, where the agents' are made by a loop. All agents read the same messages, so one
// more needs no event of its own.
func TestEveryFunctionOfTheTemplateHasASavedEvent(t *testing.T) {
	template, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^ +"?([A-Za-z${}]+)"?:\n +Type: AWS::Serverless::Function$`).FindAllStringSubmatch(string(template), -1) {
		if strings.HasSuffix(found[1], "Door") {
			continue // Behind a URL: no queue brings it anything. lab/e2e/functions knocks at it.
		}
		if !strings.HasPrefix(found[1], "${Agent}") {
			want = append(want, found[1])
			continue
		}
		agents := regexp.MustCompile(`(?m)^  Agents: &agents \[(.+)\]$`).FindStringSubmatch(string(template))
		if agents == nil {
			t.Fatal("template.yaml has no list of agents")
		}
		for agent := range strings.SplitSeq(agents[1], ", ") {
			want = append(want, strings.Replace(found[1], "${Agent}", agent, 1))
		}
	}
	var got []string
	for _, c := range cases() {
		got = append(got, c.function)
	}
	for _, function := range got {
		if !slices.Contains(want, function) {
			t.Errorf("saved events are for %s, which is no function of %v", function, want)
		}
	}
	agents := 0
	for _, function := range want {
		if strings.HasSuffix(function, "Agent") && slices.Contains(got, function) {
			agents++
		} else if !strings.HasSuffix(function, "Agent") && !slices.Contains(got, function) {
			t.Errorf("no saved event is for %s", function)
		}
	}
	if agents == 0 || len(want) < 6 {
		t.Errorf("saved events are for %d agents, and %v functions", agents, want)
	}
}

// What is saved for an agent is read by it, and what it is to answer is read by the Scheduler.
func TestTheSavedMessagesAreReadByWhomTheyAreFor(t *testing.T) {
	for _, c := range cases() {
		body, _, err := saved(savedEvents, c)
		if err != nil {
			t.Fatal(err)
		}
		var e events.SQSEvent
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatalf("%s: %v", c.file(), err)
		}
		for _, record := range e.Records {
			if strings.HasPrefix(c.name, "agent-") {
				_, err = wire.DecodeTask(record.Body)
			} else {
				_, err = wire.DecodeIncoming(record.Body)
			}
			if poison := strings.HasSuffix(c.name, "-poison"); (err != nil) != poison {
				t.Errorf("%s: got %v, want an error only of poison", c.file(), err)
			}
		}
	}
}
