//go:build browser

package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// pictured is the moment that the pictures show.
var pictured = time.Date(2026, time.November, 21, 11, 43, 19, 0, time.UTC)

// staff are the agents of testdata/pictures.
var staff = []string{"inventory", "payments", "courier", "mailer", "fares", "flights", "hotels", "cars", "loyalty", "tickets", "documents", "bank"}

// actor is one of them.
type actor struct {
	name  string
	story *story
}

func (a actor) Name() string { return a.name }

// Handle takes its time, and then says what the story says.
func (a actor) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	takes, err := a.story.act(a.name, task)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(outputs[task.Step])
}

// outputs are what steps give.
var outputs = map[string]map[string]any{
	"reserve": {"reservation": "R-5512", "shelf": "B-14"},
	"charge":  {"receipt": "ch_3PqX9a", "amount": 412.5},
	"ship":    {"parcel": "JD0002 2881 4410", "by": "courier", "days": 2},
	"quote":   {"fare": 412.5, "currency": "EUR", "valid": "2026-11-21T12:00:00Z"},
	"flight":  {"locator": "QX7M2P", "flights": []string{"OS 281", "OS 282"}},
	"hotel":   {"reservation": "H-88213", "total": 412, "nights": 3},
	"car":     {"voucher": "C-2207"},
	"render":  {"document": "invoice-de.pdf", "pages": 2},
}

// story is what happens in the world of the pictures, on the clock of the bubble.
type story struct {
	engine *engine.Engine
	t      *testing.T
}

// at waits until a time of the day that is pictured.
func (s *story) at(clock string) {
	s.t.Helper()
	d, err := time.Parse("15:04:05", clock)
	if err != nil {
		s.t.Fatal(err)
	}
	y, m, day := pictured.Date()
	time.Sleep(time.Until(time.Date(y, m, day, d.Hour(), d.Minute(), d.Second(), 0, time.UTC)))
}

// act says how long an agent takes for a task, and how it ends.
func (s *story) act(name string, task makegood.Task) (time.Duration, error) {
	trouble := time.Now().After(time.Date(2026, time.November, 21, 11, 34, 0, 0, time.UTC))
	takes := 200*time.Millisecond + time.Duration(len(task.Key)*37%900)*time.Millisecond
	switch name + " " + task.Action {
	case "payments charge":
		if trouble && task.Workflow == "order" {
			return 3 * time.Second, agent.Kind("upstream", errors.New("500 from payments: upstream acquirer timeout"))
		}
	case "documents render":
		if task.Job > "inv-77118" {
			return takes, agent.Final(errors.New(`template invoice-de.html: no field "vatId" in .input.customer`))
		}
	case "flights flight":
		if task.Attempt == 1 {
			return 29 * time.Second, errors.New("504 from the reservation system")
		}
		return 2100 * time.Millisecond, nil
	case "hotels hotel":
		if task.Attempt == 1 {
			return 2800 * time.Millisecond, errors.New("503 from hotels: try again")
		}
		return 1900 * time.Millisecond, nil
	case "cars car":
		return 10800 * time.Millisecond, nil
	case "tickets tickets":
		if task.Attempt == 1 {
			return 1800 * time.Millisecond, errors.New("502 from tickets")
		}
		return 1100 * time.Millisecond, agent.Final(agent.Kind("fare_expired", errors.New("409 fare_expired: the fare of 412.50 ended at 11:00")))
	case "hotels cancel":
		if task.Job == "t-20481" {
			return 900 * time.Millisecond, agent.Final(agent.Kind("past_free_cancellation",
				errors.New("409 past_free_cancellation: free cancellation of H-88213 ended at 2026-11-21T11:00:00Z; 50 % would be kept")))
		}
	case "payments refund", "courier ship":
		return 4 * time.Second, nil
	case "bank transfer":
		return takes, errors.New("read: connection reset by peer")
	}
	return takes, nil
}

func (s *story) submit(workflow, id, input string) {
	s.t.Helper()
	_, err := s.engine.Submit(s.t.Context(), makegood.Submission{Workflow: workflow, ID: id, Input: json.RawMessage(input)})
	s.check(err)
}

func (s *story) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// order submits an order.
func (s *story) order(n int) {
	s.t.Helper()
	s.submit("order", fmt.Sprintf("o-%d", n), fmt.Sprintf(
		`{"order": "o-%d", "customer": "c-%d@example.com", "total": %d.50, "items": [{"sku": "mug-%02d", "quantity": %d}]}`, n, n%97, 10+n%90, n%30, 1+n%4))
}

// approve answers the step of a trip that waits for a person.
func (s *story) approve(id string) {
	s.t.Helper()
	_, err := s.engine.Complete(s.t.Context(), id, api.StepRef{Step: "approve"}, json.RawMessage(`"approve"`))
	s.check(err)
}

// morning is what has happened until the pictures are taken.
func (s *story) morning() {
	s.t.Helper()
	for i := range 6 {
		s.submit("invoice", fmt.Sprintf("inv-%d", 77116+i), `{"customer": {"name": "Example GmbH", "country": "DE"}, "lines": 12}`)
	}
	s.schedules()
	s.at("09:12:04")
	s.trip("t-20481", "Ada Wong", "LIS")
	s.trip("t-20495", "Jonas Berg", "CPH")
	s.orders(88337, 40, 97*time.Second)
	s.trip("t-20507", "Grace Hall", "OSL")
	s.submit("refund", "r-3107", `{"amount": 80}`)
	s.trip("t-20512", "Mara Lind", "HEL")
	s.at("10:31:10")
	s.approve("t-20495")
	s.at("10:40:00")
	s.submit("refund", "r-3108", `{"amount": 35}`)
	_, err := s.engine.Request(s.t.Context(), "r-3108", api.Request{Verb: makegood.VerbCancel, Reason: "the customer keeps it"})
	s.check(err)
	s.at("11:16:40")
	s.approve("t-20481")
	s.orders(88380, 9, 61*time.Second)
	s.at("11:27:00")
	_, err = s.engine.PauseAll(s.t.Context(), makegood.HoldAgent, "courier", "storm, no collection before 14:00 (ops@example.com)")
	s.check(err)
	s.orders(88389, 12, 67*time.Second)
	s.at("11:42:30")
	s.trip("t-20518", "Noor Adel", "ATH")
	s.at("11:43:09")
	s.approve("t-20512")
	s.at("11:43:17")
	s.orders(88401, 2, time.Second)
	s.at("11:43:19")
}

// orders submits n orders, one after the other.
func (s *story) orders(first, n int, apart time.Duration) {
	s.t.Helper()
	for i := range n {
		if i > 0 {
			time.Sleep(apart)
		}
		s.order(first + i)
	}
}

// trip submits a trip.
func (s *story) trip(id, who, to string) {
	s.t.Helper()
	s.submit("trip", id, fmt.Sprintf(`{"traveller": %q, "from": "VIE", "to": %q, "nights": 3}`, who, to))
}

// schedules are those of a shop.
func (s *story) schedules() {
	s.t.Helper()
	for _, one := range []makegood.Schedule{
		{Name: "nightly-invoices", Workflow: "invoice", Cron: "0 22 * * *", Zone: "Europe/Vienna", Input: json.RawMessage(`{"customer": {"name": "all"}, "lines": 0}`)},
		{Name: "standing-order", Workflow: "order", Every: makegood.Duration(time.Hour), Input: json.RawMessage(`{"order": "standing", "customer": "c-1@example.com", "total": 20, "items": []}`)},
	} {
		_, err := s.engine.CreateSchedule(s.t.Context(), one)
		s.check(err)
	}
}

// staged serves the world of the pictures until the test ends: its clock stands still at the moment that is pictured, since
// the bubble's does while anybody waits for a connection.
func staged(t *testing.T) (url string) {
	t.Helper()
	ready, done, ended := make(chan string, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(ready)
		synctest.Test(t, func(t *testing.T) { serveStaged(t, ready, done) })
	}()
	url = <-ready
	t.Cleanup(func() {
		close(done)
		<-ended
	})
	if url == "" {
		t.FailNow()
	}
	return url
}

func serveStaged(t *testing.T, ready chan<- string, done <-chan struct{}) {
	s := &story{t: t}
	s.at("08:40:00")
	var agents []agent.Handler
	for _, name := range staff {
		agents = append(agents, actor{name, s})
	}
	e, err := engine.Open(t.Context(), engine.Options{
		Workflows: os.DirFS("testdata/pictures"), Agents: agents, Logger: slog.New(slog.DiscardHandler),
		Notify: engine.Notify{Questions: map[string]func(context.Context, engine.Question) error{"travel-desk": func(context.Context, engine.Question) error { return nil }}},
	})
	s.check(err)
	s.engine = e
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	s.morning()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	server := &http.Server{Handler: e.Handler()}
	go func() { _ = server.Serve(l) }()
	ready <- "http://" + l.Addr().String()
	<-done
	_ = server.Close()
	cancel()
	<-ran
	s.check(e.Close())
}
