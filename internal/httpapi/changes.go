package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
)

const (
	// changesPath is where changes are shown as they happen: a stream, which the description of the API has no word for.
	changesPath = "/api/changes"
	// maxFollowers is how many may follow at once.
	maxFollowers = 100
	// changesPulse is how often an idle stream sends a sign of life, and changesWithin how long a line may take to be read.
	changesPulse  = 15 * time.Second
	changesWithin = 10 * time.Second
)

// followed is a change as followers receive it.
type followed struct {
	Job      string `json:"job"`
	Workflow string `json:"workflow"`
	makegood.Change
}

// follower writes changes to one follower.
type follower struct {
	w             http.ResponseWriter
	control       *http.ResponseController
	run           string
	job, workflow string
}

// follow sends changes as server-sent events until the follower leaves. The id of an event is the run of this process
// and its place in it: a follower that returns with it as Last-Event-ID gets the changes it missed, as far as they are
// kept, and is told how many are lost.
func (a *handlers) follow(w http.ResponseWriter, r *http.Request) {
	if a.Changes == nil {
		a.refuse(w, newProblem(http.StatusNotFound, "changes are not kept here: start it with --changes, or Options.Notify.Changes"))
		return
	}
	select {
	case a.followers <- struct{}{}:
		defer func() { <-a.followers }()
	default:
		a.refuse(w, newProblem(http.StatusServiceUnavailable, "%d follow already, which is the limit", maxFollowers))
		return
	}
	f := &follower{
		w: w, control: http.NewResponseController(w), run: a.run,
		job: r.URL.Query().Get("job"), workflow: r.URL.Query().Get("workflow"),
	}
	run, at, _ := strings.Cut(r.Header.Get("Last-Event-ID"), ":")
	after, _ := strconv.ParseInt(at, 10, 64)
	if run != a.run {
		after = 0
	}
	all, stop := a.Changes.Watch(after)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // Proxies must not buffer the stream.
	// The server's own limits are for short answers.
	_ = f.control.SetReadDeadline(time.Time{})
	if run != "" && run != a.run && f.missed("", -1) != nil {
		return
	}
	if f.write(": here is what changes\n\n") == nil {
		f.follow(r, all, a.Changes.Ended())
	}
}

func (f *follower) follow(r *http.Request, all <-chan changes.Shown, ended <-chan struct{}) {
	alive := time.NewTicker(changesPulse)
	defer alive.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-ended:
			return
		case <-alive.C:
			err = f.write(":\n\n")
		case s := <-all:
			err = f.send(s)
		}
		if err != nil {
			return
		}
	}
}

func (f *follower) send(s changes.Shown) error {
	id := fmt.Sprintf("%s:%d", f.run, s.At)
	if s.Missed > 0 {
		if err := f.missed(fmt.Sprintf("%s:%d", f.run, s.At-1), s.Missed); err != nil {
			return err
		}
	}
	if f.job != "" && f.job != s.Job || f.workflow != "" && f.workflow != s.Workflow {
		return nil
	}
	body, err := json.Marshal(followed{s.Job, s.Workflow, s.Change})
	if err != nil {
		return err
	}
	return f.write(fmt.Sprintf("id: %s\nevent: change\ndata: %s\n\n", id, body))
}

func (f *follower) missed(id string, n int64) error {
	text := fmt.Sprintf("event: missed\ndata: {\"missed\":%d}\n\n", n)
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	return f.write(text)
}

func (f *follower) write(text string) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(changesWithin))
	if _, err := f.w.Write([]byte(text)); err != nil {
		return err
	}
	return f.control.Flush()
}
