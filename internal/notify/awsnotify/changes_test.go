package awsnotify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
)

// runsOf makes a run for each of so many jobs, each with a reason of so many bytes.
func runsOf(n, bytes int) (all []changes.Run) {
	for i := range n {
		all = append(all, changes.Run{Changes: makegood.Changes{
			Version: domain.ChangesVersion, Job: fmt.Sprint("order-", i), Workflow: "order",
			Changes: []makegood.Change{{Number: 1, To: "Pending", Reason: strings.Repeat("x", bytes)}},
		}})
	}
	return all
}

// taking is a bus that takes an entry the take-th time that it is put; 0: never. It returns what it was asked.
func taking(t *testing.T, takes map[string]int) (awsnotify.Bus, *[]int) {
	t.Helper()
	sizes, seen := new([]int), map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Entries []struct{ Detail, DetailType, Source string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		*sizes = append(*sizes, len(request.Entries))
		var answers []string
		failed := 0
		for _, e := range request.Entries {
			var run makegood.Changes
			if err := json.Unmarshal([]byte(e.Detail), &run); err != nil || e.DetailType != awsnotify.Changes || e.Source != awsnotify.Source || run.Version != 1 {
				t.Errorf("put %+v: %v", e, err)
			}
			seen[run.Job]++
			if want, ok := takes[run.Job]; ok && seen[run.Job] != want {
				failed++
				answers = append(answers, `{"ErrorCode":"ThrottlingException","ErrorMessage":"slow down"}`)
				continue
			}
			answers = append(answers, `{"EventId":"1"}`)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprintf(w, `{"FailedEntryCount":%d,"Entries":[%s]}`, failed, strings.Join(answers, ","))
	}))
	t.Cleanup(server.Close)
	return awsnotify.Bus{Client: newBusClient(server.URL), Name: "jobs"}, sizes
}

func TestRunsArePutTenAtATimeAndThoseThatAreNotTakenAgain(t *testing.T) {
	bus, sizes := taking(t, map[string]int{"order-3": 2, "order-11": 0})
	errs := bus.Publish(t.Context(), runsOf(12, 10))
	for i, err := range errs {
		if i == 11 && (err == nil || !strings.Contains(err.Error(), "slow down")) || i != 11 && err != nil {
			t.Errorf("run %d: got %v", i, err)
		}
	}
	if got := fmt.Sprint(*sizes); got != "[10 2 2 1]" {
		t.Errorf("requests of %s entries, want [10 2 2 1]", got)
	}
}

func TestARequestIsNotTooLarge(t *testing.T) {
	bus, sizes := taking(t, nil)
	for _, err := range bus.Publish(t.Context(), runsOf(3, 100<<10)) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(*sizes); got != "[2 1]" {
		t.Errorf("requests of %s entries, want [2 1]", got)
	}
}

func TestWhenTheBusDoesNotAnswerEveryRunSaysSo(t *testing.T) {
	bus, _ := serve(t, `{`)
	for i, err := range bus.Publish(t.Context(), runsOf(2, 1)) {
		if err == nil {
			t.Errorf("run %d: got success", i)
		}
	}
}
