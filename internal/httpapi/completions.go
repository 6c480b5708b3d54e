package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/domain"
)

// StepCompletion is the body that completes a step by its address.
type StepCompletion struct {
	Output  json.RawMessage `json:"output,omitempty"`
	Undo    bool            `json:"undo,omitempty"`
	Round   int             `json:"round,omitempty"`
	Early   string          `json:"early,omitempty"`
	Why     string          `json:"why,omitempty"`
	Request string          `json:"request,omitempty"`
}

// StepFailure is the body that says by its address that a step has failed.
type StepFailure struct {
	Error   Failure `json:"error"`
	Undo    bool    `json:"undo,omitempty"`
	Round   int     `json:"round,omitempty"`
	Early   string  `json:"early,omitempty"`
	Request string  `json:"request,omitempty"`
}

// StepHeartbeat is the body that has a step wait longer, by its address.
type StepHeartbeat struct {
	Deadline time.Time `json:"deadline,omitzero"`
	Undo     bool      `json:"undo,omitempty"`
	Round    int       `json:"round,omitempty"`
}

// StepSettlement is the body that says that a person has dealt with a step.
type StepSettlement struct {
	As      string          `json:"as"`
	Output  json.RawMessage `json:"output,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Undo    bool            `json:"undo,omitempty"`
	Round   int             `json:"round,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Request string          `json:"request,omitempty"`
}

// TokenCompletion, TokenFailure and TokenHeartbeat are the bodies sent by the holder of a step's completion token.
type (
	TokenCompletion struct {
		Completion string          `json:"completion"`
		Output     json.RawMessage `json:"output,omitempty"`
		By         string          `json:"by,omitempty"`
		Why        string          `json:"why,omitempty"`
		Request    string          `json:"request,omitempty"`
	}
	TokenFailure struct {
		Completion string  `json:"completion"`
		Error      Failure `json:"error"`
		Request    string  `json:"request,omitempty"`
	}
	TokenHeartbeat struct {
		Completion string    `json:"completion"`
		Deadline   time.Time `json:"deadline,omitzero"`
	}
)

// Failure is the reason for a step's failure, as its completer gives it.
type Failure struct {
	Message   string           `json:"message"`
	Kind      string           `json:"kind,omitempty"`
	Retryable bool             `json:"retryable,omitempty"`
	Applied   makegood.Applied `json:"applied,omitempty"`
}

func (f Failure) error() *makegood.StepError {
	return &makegood.StepError{Message: f.Message, Kind: f.Kind, Retryable: f.Retryable, Applied: f.Applied}
}

// keep is the value of early that stores an answer for a step that does not wait yet.
const keep = "keep"

// completionRoutes are the routes of steps that wait or are settled: by address for operators, by completion token for
// the holder of the token.
func completionRoutes() []route {
	addressed := func() map[int]any { return askedOf(makegood.Job{}, http.StatusConflict) }
	held := func() map[int]any {
		return posted(map[int]any{http.StatusOK: api.Standing{}, http.StatusNotFound: Problem{}})
	}
	const at = "/api/jobs/{id}/steps/{step}/"
	const address = " why: the reason for the answer, which some approvals want. undo: its undo. round: refused in another round than this; without it, the round that the job is in. early: keep, an answer that comes before the step waits is kept for when it does; else it is refused."
	const token = " The completion token allows this alone, and shows no more of the job. 404: no job that is here has made this token."
	const once = " The same again is the same, under the same request at any rate; another answer is refused (409, with the reason)."
	return []route{
		{
			method: "POST", path: at + "complete", name: "completeStep", door: Operate, handle: taking((*handlers).completeStep), body: StepCompletion{}, limit: maxBody,
			summary: "Complete a step that waits, with its output." + once + address + " The answer has no payloads.", answers: addressed(),
		},
		{
			method: "POST", path: at + "fail", name: "failStep", door: Operate, handle: taking((*handlers).failStep), body: StepFailure{}, limit: maxOverhead,
			summary: "Say that a step that waits has failed. retryable: it is tried again, as its workflow says. applied: no, where it is known that it had no effect." + once + address + " The answer has no payloads.", answers: addressed(),
		},
		{
			method: "POST", path: at + "heartbeat", name: "heartbeatStep", door: Operate, handle: taking((*handlers).heartbeatStep), body: StepHeartbeat{},
			summary: fmt.Sprintf("Have a step that waits wait longer: until deadline, at most %d days from now; without it, as long again as it was to wait. No deadline is moved back.", int(makegood.MaxWait.Hours()/24)),
			answers: addressed(),
		},
		{
			method: "POST", path: at + "settle", name: "settleStep", door: Operate, handle: taking((*handlers).settleStep), body: StepSettlement{}, limit: maxBody,
			summary: "Say that a person has dealt with a step, or its undo, outside the job. as: done, with an output; or skipped, for which a reason must be given, and a step of unknown outcome stays unknown; or notDone, of a step of unknown outcome: no effect of it stands, so it is not undone and may be tried again, also by another definition, and a reason must be given. Its job goes on, if no other step has failed; by notDone it does not go on. An attempt that is out is closed first; refused while an agent holds it (409, with its name and until when), of a side that the job does not go, and of a step or undo that is done or settled already. undo: its undo. round: refused in another round than this. attempt: refused if another than this is the latest. The same again is the same. The answer has no payloads.",
			answers: askedOf(Requested{}, http.StatusConflict),
		},
		{
			method: "POST", path: "/api/completions/complete", name: "completeByToken", door: Complete, handle: taking((*handlers).completeByToken), body: TokenCompletion{}, limit: maxBody,
			summary: "Complete a step under its completion token, with its output." + once + token, answers: held(),
		},
		{
			method: "POST", path: "/api/completions/fail", name: "failByToken", door: Complete, handle: taking((*handlers).failByToken), body: TokenFailure{}, limit: maxOverhead,
			summary: "Say under its completion token that a step has failed." + once + token, answers: held(),
		},
		{
			method: "POST", path: "/api/completions/heartbeat", name: "heartbeatByToken", door: Complete, handle: taking((*handlers).heartbeatByToken), body: TokenHeartbeat{}, limit: maxOverhead,
			summary: "Have a step wait longer under its completion token: until deadline; without it, as long again as it was to wait." + token, answers: held(),
		},
	}
}

// address is the step in a request's path, as its body narrows it.
func address(r *http.Request, at api.StepRef, early string) (api.StepRef, error) {
	if early != "" && early != keep {
		return at, bad("early is %.40q: want %s, or no value", early, keep)
	}
	at.Step, at.Early = r.PathValue("step"), early == keep
	return at, nil
}

func (a *handlers) completeStep(r *http.Request, said StepCompletion) (answer, error) {
	return a.endStep(r, api.StepRef{Undo: said.Undo, Round: said.Round, Why: said.Why}, said.Early, control.Answer{Output: said.Output, Request: said.Request})
}

func (a *handlers) failStep(r *http.Request, said StepFailure) (answer, error) {
	return a.endStep(r, api.StepRef{Undo: said.Undo, Round: said.Round}, said.Early, control.Answer{Error: said.Error.error(), Request: said.Request})
}

func (a *handlers) endStep(r *http.Request, place api.StepRef, early string, says control.Answer) (answer, error) {
	at, err := address(r, place, early)
	if err != nil {
		return answer{}, err
	}
	return orError(a.Jobs.Answer(r.Context(), r.PathValue("id"), at, says))
}

func (a *handlers) heartbeatStep(r *http.Request, said StepHeartbeat) (answer, error) {
	at := api.StepRef{Step: r.PathValue("step"), Undo: said.Undo, Round: said.Round}
	return orError(a.Jobs.Heartbeat(r.Context(), r.PathValue("id"), at, said.Deadline))
}

func (a *handlers) settleStep(r *http.Request, said StepSettlement) (answer, error) {
	if !slices.Contains(domain.SettledAs(), makegood.StepState(said.As)) {
		return answer{}, bad("as is %.40q: want one of %v", said.As, domain.SettledAs())
	}
	at, as := api.StepRef{Step: r.PathValue("step"), Undo: said.Undo, Round: said.Round}, makegood.StepState(said.As)
	return requested(a.Jobs.Settle(r.Context(), r.PathValue("id"), at, api.SettleOptions{
		Skipped: as == makegood.StepSkipped, NotDone: as == makegood.StepNotDone, Attempt: said.Attempt, Output: said.Output, Reason: said.Reason, Name: said.Request,
	}))
}

func (a *handlers) completeByToken(r *http.Request, said TokenCompletion) (answer, error) {
	return a.endByToken(r, said.Completion, control.Answer{Output: said.Output, By: said.By, Why: said.Why, Request: said.Request})
}

func (a *handlers) failByToken(r *http.Request, said TokenFailure) (answer, error) {
	return a.endByToken(r, said.Completion, control.Answer{Error: said.Error.error(), Request: said.Request})
}

func (a *handlers) endByToken(r *http.Request, token string, says control.Answer) (answer, error) {
	return orError(a.Jobs.AnswerByToken(r.Context(), token, says))
}

func (a *handlers) heartbeatByToken(r *http.Request, said TokenHeartbeat) (answer, error) {
	return orError(a.Jobs.Completion(said.Completion).Heartbeat(r.Context(), said.Deadline))
}
