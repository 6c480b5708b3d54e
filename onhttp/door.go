package onhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	heldback "github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// answerWithin is how long an answer may take, beside what the engine was asked to wait.
	answerWithin = 30 * time.Second
	// shortAnswer is how long that of a heartbeat may take at least; a quarter of the step's silence, where that is longer.
	shortAnswer = time.Second
	// maxAnswer is how much of an answer is read: a batch of messages, and the JSON around each.
	maxAnswer = limits.MaxBatch * (limits.MaxMessageBytes + 1<<10)
	// maxProblem is how much of an error's answer is read.
	maxProblem = 64 << 10
)

// door is the engine's door, as an agent sees it.
type door struct {
	base     *url.URL
	http     *http.Client
	agent    string
	token    string
	instance string
	logger   *slog.Logger
	// pause is the wait after a payload did not come through for the first time.
	pause time.Duration
}

func newDoor(o working) (*door, error) {
	base, err := url.Parse(strings.TrimSuffix(o.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of an engine: want one such as http://127.0.0.1:4777", o.URL)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = o.Concurrency + 1
	return &door{
		base: base, pause: transferPause, agent: o.Agent.Name(), token: o.Token, instance: o.Instance,
		logger: slog.New(heldback.New(o.Logger.Handler(), time.Now)),
		// No redirect is followed: the API has none, and the token is for the engine alone.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

func (d *door) close() { d.http.CloseIdleConnections() }

// take asks for tasks: most at most, waiting so long for the first. A task that cannot be read is left to end in
// silence, without effect on those beside it.
func (d *door) take(ctx context.Context, request string, most int, wait time.Duration) ([]agentrun.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+answerWithin)
	defer cancel()
	asked := time.Now()
	var given agentdoor.TasksGiven
	err := d.post(ctx, "tasks", agentdoor.TasksAsked{Instance: d.instance, Max: most, Wait: int(wait.Seconds()), Request: request}, &given)
	if err != nil {
		return nil, err
	}
	if len(given.Tasks) > most {
		return nil, fmt.Errorf("the engine gave %d tasks to a request for %d", len(given.Tasks), most)
	}
	// The answer was written no earlier than that.
	answered := asked.Add(millis(given.HeldMs))
	var taken []agentrun.Held
	for _, g := range given.Tasks {
		held, err := d.held(g, answered.Add(millis(g.LeftMs)))
		if err != nil {
			d.logger.ErrorContext(ctx, "a task cannot be read, and ends in silence", "agent", d.agent, "lockedBy", g.LockedBy, "error", err)
			continue
		}
		taken = append(taken, held)
	}
	return taken, nil
}

// held returns a task with its claim, and its heartbeat, reply and payloads.
func (d *door) held(g agentdoor.TaskGiven, expires time.Time) (agentrun.Held, error) {
	task, err := wire.DecodeTask(string(g.Task))
	if err == nil && task.Agent != d.agent {
		err = fmt.Errorf("a task for agent %.70q", task.Agent)
	}
	if err != nil {
		return agentrun.Held{}, err
	}
	large, err := d.payloadsOf(task, g.LockedBy)
	claim := job.Claim{Attempt: task.Attempt, LockedBy: g.LockedBy, StartedAt: domain.Instant(g.StartedAt), CompleteBy: domain.Instant(g.CompleteBy)}
	return agentrun.Held{
		Task: task, Claim: claim, Expires: expires, Reply: d.reply, Large: large,
		Heartbeat: func(ctx context.Context, progress json.RawMessage) (time.Duration, error) {
			return d.heartbeat(ctx, task, claim.LockedBy, progress)
		},
	}, err
}

// heartbeat is what agentrun.Held wants of one. One that hangs leaves time for others.
func (d *door) heartbeat(ctx context.Context, task makegood.Task, lockedBy string, progress json.RawMessage) (time.Duration, error) {
	within, cancel := context.WithTimeout(ctx, min(answerWithin, max(shortAnswer, domain.Silence(task).Std()/4)))
	defer cancel()
	var taken agentdoor.HeartbeatTaken
	err := d.post(within, "heartbeats", agentdoor.Heartbeat{
		Job: task.Job, Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: lockedBy, Progress: progress,
	}, &taken)
	if err != nil {
		return 0, d.unanswered(ctx, "a heartbeat", err)
	}
	left := millis(taken.LeftMs)
	switch agentdoor.Held(taken.Status) {
	case agentdoor.Mine:
		return left, nil
	case agentdoor.Withdrawn:
		return left, store.ErrWithdrawn
	case agentdoor.Over:
		return 0, store.ErrTaken
	default:
		return 0, fmt.Errorf("a heartbeat was answered with status %.40q", taken.Status)
	}
}

// reply sends an outcome. A reply without effect is no error: the agent could not mend it.
func (d *door) reply(ctx context.Context, body string) error {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := d.post(within, "replies", json.RawMessage(body), new(agentdoor.ReplyTaken)); err != nil {
		return d.unanswered(ctx, "a reply", err)
	}
	return nil
}

// unanswered returns a refusal for a message that can never be taken. Any other error it logs, and returns as it is,
// for the message is sent again: a short outage is one line, and a long one a line a minute.
func (d *door) unanswered(ctx context.Context, what string, err error) error {
	if wrong := new(problem); errors.As(err, &wrong) && (wrong.status == http.StatusBadRequest || wrong.status == http.StatusRequestEntityTooLarge) {
		return queue.Refused("%s", wrong.text)
	}
	if ctx.Err() == nil {
		d.logger.WarnContext(ctx, "no answer, asked again", "agent", d.agent, "to", what, "error", err)
	}
	return err
}

// problem is an answer that is no success.
type problem struct {
	status int
	text   string
	// final: another attempt would be told the same.
	final bool
}

func (p *problem) Error() string { return fmt.Sprintf("%d: %s", p.status, p.text) }

// post asks once, and reads the answer into out. *problem; after any other error the request may have had its effect.
func (d *door) post(ctx context.Context, what string, in, out any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // it would make six bytes of one, and the body larger than it may be
	if err := e.Encode(in); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base.JoinPath("api", "agents", d.agent, what).String(), &body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	d.showToken(request)
	answer, err := d.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return problemOf(answer)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// showToken adds the agent's token to a request.
func (d *door) showToken(r *http.Request) {
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
}

func problemOf(answer *http.Response) *problem {
	var said struct {
		Error string `json:"error"`
		Final bool   `json:"final"`
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil || json.Unmarshal(text, &said) != nil || said.Error == "" {
		said.Error, said.Final = "no engine answers so", false
	}
	return &problem{answer.StatusCode, said.Error, said.Final}
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }
