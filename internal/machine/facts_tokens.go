package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// scheme is the number of the way in which tokens are made. It stands before each, followed by a dot, so that tokens
// of another way can be recognized.
const scheme = 1

// maxSchemeDigits is how many digits the number of a scheme can have.
const maxSchemeDigits = 4

// tokenBytes is how much of the HMAC a token has.
const tokenBytes = 16

// Token returns the token that a reply to an attempt must carry, so that only the receiver of its task can answer: an
// HMAC of step and attempt under the job's secret. Empty for a job that has no secret.
func Token(j job.Job, step string, attempt int) string {
	var room [maxTokenText]byte
	return string(appendToken(room[:0], j.Secret, step, attempt))
}

// maxTokenText is the length that no token of an attempt exceeds.
const maxTokenText = 32

// appendToken appends the token of an attempt to a text.
func appendToken(to, secret []byte, step string, attempt int) []byte {
	if len(secret) == 0 {
		return to
	}
	var room [maxCodedText]byte
	// A step's name has no such byte, so no two attempts are written the same.
	text := strconv.AppendInt(append(append(room[:0], step...), 0), int64(attempt), 10)
	return appendCode(append(strconv.AppendInt(to, scheme, 10), '.'), secret, text)
}

// appendCode appends the beginning of the HMAC-SHA256 of a text, written as text.
func appendCode(to, secret, text []byte) []byte {
	mac := hmacOf(secret, text)
	return base64.RawURLEncoding.AppendEncode(to, mac[:tokenBytes])
}

// hmacOf is the HMAC-SHA256 (RFC 2104) of a text. Package crypto/hmac makes the same with five allocations more, and
// every step needs four HMACs. That package handles secrets longer than a block, which no job has.
func hmacOf(secret, text []byte) [sha256.Size]byte {
	if len(secret) > sha256.BlockSize {
		mac := hmac.New(sha256.New, secret)
		mac.Write(slices.Clone(text)) // A copy lets the text of every other caller stay on its stack.
		return [sha256.Size]byte(mac.Sum(nil))
	}
	var room [sha256.BlockSize + maxCodedText]byte
	inner := sha256.Sum256(append(pad(room[:0], secret, 0x36), text...))
	return sha256.Sum256(append(pad(room[:0], secret, 0x5c), inner[:]...))
}

// maxCodedText is the length that most authenticated texts do not exceed.
const maxCodedText = 192

// pad appends a block to an empty buffer: the secret, padded with zeros, each byte XORed with by.
func pad(buffer, secret []byte, by byte) []byte {
	for i := range sha256.BlockSize {
		b := by
		if i < len(secret) {
			b ^= secret[i]
		}
		buffer = append(buffer, b)
	}
	return buffer
}

// Genuine reports whether a reply carries the token of the attempt that it speaks of.
func Genuine(j job.Job, r job.Reply) bool {
	var room [maxTokenText]byte
	want := appendToken(room[:0], j.Secret, r.Step, r.Attempt)
	return len(want) > 0 && hmac.Equal(want, []byte(r.Token))
}

// OfLaterScheme reports whether only a later release knows the scheme of a reply's token: this release cannot verify
// it, so the reply must neither count nor be dropped. Any other token that is not Genuine is forged.
func OfLaterScheme(r job.Reply) bool {
	number, rest, _ := strings.Cut(r.Token, ".")
	if rest == "" || len(number) > maxSchemeDigits {
		return false
	}
	of, err := strconv.Atoi(number)
	return err == nil && of > scheme && strconv.Itoa(of) == number
}

// replyTo is the fence: it returns the side of the step that a reply names, and whether the reply counts. The step is
// negative if it does not exist or must not be disclosed.
func (t *turn) replyTo(r job.Reply) (at side, v Verdict) {
	i, ok := t.indexOf(r.Step)
	if !ok {
		return side{step: -1}, Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", r.Step)}
	}
	if OfLaterScheme(r) {
		return side{step: -1}, Verdict{Kind: Newer, Reason: fmt.Sprintf("a token of a later scheme for attempt %d of step %s", r.Attempt, r.Step)}
	}
	if !Genuine(t.job, r) {
		return side{step: -1}, Verdict{Kind: Stale, Reason: fmt.Sprintf("a reply without the token of attempt %d of step %s", r.Attempt, r.Step)}
	}
	s := &t.job.Steps[i]
	a, undo, ok := dispatched(s)
	at = side{i, undo}
	switch {
	case ok && a.Attempt == r.Attempt:
		return at, Verdict{Kind: Applied}
	case s.Forward.Silence().Attempt == r.Attempt || s.Undo.Silence().Attempt == r.Attempt:
		return at, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s ended in silence", r.Attempt, r.Step)}
	case s.Forward.Attempt != r.Attempt && s.Undo.Attempt != r.Attempt:
		return at, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", r.Attempt, r.Step)}
	}
	return at, Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has replied", r.Attempt, r.Step)}
}

// outcomeOf is the fence of replies that say how an attempt ended. In a chain each counts after the one before it.
func (t *turn) outcomeOf(r job.Reply) (at side, v Verdict) {
	if at, v = t.replyTo(r); v.Kind == Applied && t.ahead(at) {
		return at, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is ahead of the step before it in its chain", r.Attempt, r.Step)}
	}
	return at, v
}

// CompletionToken returns the completion token of a step in the job's round, in one direction. It names its purpose,
// followed by an HMAC under the job's secret. Attempt tokens cannot be derived from it, nor it from them. It is empty
// for a job that has no secret.
func CompletionToken(j job.Job, step string, undo bool) string {
	if len(j.Secret) == 0 {
		return ""
	}
	s, _ := j.Step(step)
	p := job.Place{Step: step, Undo: undo, Round: j.Round, Generation: s.Forward.Generation}
	if undo {
		p.Generation = s.Undo.Generation
	}
	var room [maxTokenText]byte
	return job.WriteCompletionToken(j.ID, p, string(appendCompletionCode(room[:0], j, p)))
}

// appendCompletionCode appends the code of a place. Its text begins with a byte that no name of a step begins with, so
// it is never the code of an attempt.
func appendCompletionCode(to []byte, j job.Job, p job.Place) []byte {
	var room [maxCodedText]byte
	return appendCode(to, j.Secret, p.AppendSays(append(room[:0], "\x00completion\x00"...), j.ID))
}

// GenuineCompletion reports whether the job made the completion token for this place, in any of its rounds.
func GenuineCompletion(j job.Job, p job.Place) bool {
	var room [maxTokenText]byte
	return len(j.Secret) > 0 && hmac.Equal(appendCompletionCode(room[:0], j, p), []byte(p.Code()))
}

// place is the fence of completions: it returns the side of the step that a completion names, and whether it counts.
func (t *turn) place(p job.Place) (at side, v Verdict) {
	i, ok := t.indexOf(p.Step)
	if !ok {
		return side{}, Verdict{Kind: Refused, Reason: t.noStep(p)}
	}
	at = side{i, p.Undo}
	if p.Token != "" && !GenuineCompletion(t.job, p) {
		return side{}, Verdict{Kind: Refused, Reason: "this is not the completion token of a step of this job"}
	}
	switch {
	case p.Round != 0 && p.Round != t.job.Round:
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("it is of round %d, the job is in round %d", p.Round, t.job.Round)}
	case p.Token != "" && p.Generation != t.activity(at).Generation:
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("it is of %s as it was before its definition or the job's input was changed", named(p.Step, p.Undo))}
	case p.Undo && !domain.CanUndo(t.w.Steps[i]):
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("step %s has no undo", p.Step)}
	}
	return at, Verdict{Kind: Applied}
}

// noStep says that a job has no such step. A known caller that may look at the job also gets the list of its steps.
func (t *turn) noStep(p job.Place) string {
	if p.Token != "" {
		return fmt.Sprintf("there is no step %s", p.Step)
	}
	names := make([]string, 0, len(t.job.Steps))
	for _, s := range t.job.Steps {
		names = append(names, s.Name)
	}
	return limits.Clip(fmt.Sprintf("there is no step %s: the job has %s", p.Step, strings.Join(names, ", ")))
}
