package command

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
)

func TestRepliesAreNamesAndURLs(t *testing.T) {
	got, err := parseReplies([]string{"shop=http://127.0.0.1:1/told?token=a=b", "crm=https://crm.example"})
	if want := "map[crm:https://crm.example shop:http://127.0.0.1:1/told?token=a=b]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	for _, flags := range [][]string{
		{"shop"},
		{"=http://secret.example"},
		{"Shop=http://secret.example"},
		{"shop=secret"},
		{"shop=ftp://secret"},
		{"shop=http://secret.example", "shop=http://secret.example"},
	} {
		if got, err := parseReplies(flags); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, %v, want an error that keeps the URL to itself", flags, got, err)
		}
	}
}

// Who is registered is told of the jobs that name them, and of no other.
func TestWhoIsRegisteredIsToldOfTheirJobs(t *testing.T) {
	var got []string
	status := http.StatusAccepted
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer shop.Close()
	n := newDevListener(map[string]string{"shop": shop.URL + "/secret", "gone": "http://127.0.0.1:1/secret"})
	notice := notify.Notice{Job: "o-1", Workflow: "order", Announcement: job.Announcement{Seq: 2, ProcessState: makegood.JobProcessed}}
	if err := n.Announce(t.Context(), notice); err != nil || len(got) != 0 {
		t.Errorf("nobody listens: got %v, %v, want nobody told", got, err)
	}
	notice.ReplyTo = "shop"
	if err := n.Announce(t.Context(), notice); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "POST application/json {") || !strings.Contains(got[0], `"processState":"Processed"`) {
		t.Errorf("got %v, %v, want the announcement", got, err)
	}
	for _, status = range []int{http.StatusFound, http.StatusInternalServerError} {
		if err := n.Announce(t.Context(), notice); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("answered %d: got %v, want an error that keeps the URL to itself", status, err)
		}
	}
	notice.ReplyTo = "gone"
	if err := n.Announce(t.Context(), notice); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody answers: got %v, want an error that keeps the URL to itself", err)
	}
}

// An operator is told of an Error and of a silent agent, and of nothing else.
func TestAnAlertGoesToItsURL(t *testing.T) {
	posted := make(chan string, 10)
	oncall := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- string(body)
	}))
	defer oncall.Close()
	n := newDevNotifier(slog.New(slog.DiscardHandler), oncall.URL, func() notify.Where { return notify.Where{Page: "http://127.0.0.1:4777"} })
	// At once: each alert waits for others of its cause.
	var told sync.WaitGroup
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobError} {
		notice := notify.Notice{Job: "o-1", Workflow: "order", Announcement: job.Announcement{Seq: 1, ProcessState: state}}
		told.Go(func() {
			if err := n.Announce(t.Context(), notice); err != nil {
				t.Error(err)
			}
		})
	}
	told.Go(func() {
		if err := n.AgentAlert(t.Context(), "payments", ""); err != nil {
			t.Error(err)
		}
	})
	told.Wait()
	close(posted)
	var got []string
	for text := range posted {
		got = append(got, text)
	}
	slices.Sort(got)
	if len(got) != 2 || !strings.Contains(got[0], `Page: http://127.0.0.1:4777/jobs/o-1\n`) || !strings.Contains(got[1], `agent payments`) {
		t.Errorf("got %v, want the Error and the silent agent", got)
	}
	if err := checkAlert("hooks.example"); err == nil {
		t.Error("an address that is no URL was taken")
	}
}
