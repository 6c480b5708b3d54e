package makegood

import (
	"encoding/json"
	"time"
)

// SentInputs are the inputs of the steps of a job and of their undos, as their latest attempts were asked.
type SentInputs struct {
	Job    string      `json:"job"`
	Inputs []SentInput `json:"inputs"`
	// More reports that the job has more than 200 of them. Those are given by their step alone.
	More bool `json:"more"`
}

// SentInput is the input of the task of a step, or of its undo. Nothing is kept for it: it is evaluated from the definition and the
// values that the job keeps, so a job pays nothing for it. All attempts of a step get the same one, unless something that it reads has
// changed between them.
type SentInput struct {
	Step string `json:"step"`
	Undo bool   `json:"undo"`
	// Attempt is the latest attempt, and OpenedAt is when it was made; null: that is not known.
	Attempt  int        `json:"attempt"`
	OpenedAt *time.Time `json:"openedAt"`
	// Value is the input, with "[secret NAME]" in the place of each secret; null where it has more than 4 KiB and was
	// not asked for by its step, and where Problem says why there is none. Bytes is how large it is.
	Value json.RawMessage `json:"value"`
	Bytes int             `json:"bytes"`
	// Secrets names the secrets that its agent puts in.
	Secrets []string `json:"secrets"`
	// AsSent reports that nothing that it reads has changed since the attempt was made. Otherwise Value is what an attempt would get now, and
	// Changed says what has changed.
	AsSent  bool   `json:"asSent"`
	Changed string `json:"changed"`
	// Problem is why the input could not be evaluated; empty: it could.
	Problem string `json:"problem"`
}
