package makegood

import (
	"encoding/json"
	"time"
)

// SentInputs are the inputs of the latest attempts of a job's steps and their undos.
type SentInputs struct {
	Job    string      `json:"job"`
	Inputs []SentInput `json:"inputs"`
	// More reports that the job has more than 200 of them. The others are available by their step alone.
	More bool `json:"more"`
}

// SentInput is the input of the task of a step, or of its undo. It is not stored: it is evaluated from the definition
// and the job's stored values, so it adds no cost to a job. All attempts of a step get the same input, unless a value
// that it reads has changed between them.
type SentInput struct {
	Step string `json:"step"`
	Undo bool   `json:"undo"`
	// Attempt is the latest attempt, and OpenedAt is when it was made; null: not known.
	Attempt  int        `json:"attempt"`
	OpenedAt *time.Time `json:"openedAt"`
	// Value is the input, with "[secret NAME]" in the place of each secret; null where it has more than 4 KiB and was not
	// asked for by its step, and where Problem says why there is none. Bytes is its size.
	Value json.RawMessage `json:"value"`
	Bytes int             `json:"bytes"`
	// Secrets names the secrets that its agent puts in.
	Secrets []string `json:"secrets"`
	// AsSent reports that the values that the input reads have not changed since the attempt was made. Otherwise Value is
	// the input that an attempt would get now, and Changed names the changes, or the gate before which the attempt stands.
	AsSent  bool   `json:"asSent"`
	Changed string `json:"changed"`
	// Problem is why the input could not be evaluated; empty: it could.
	Problem string `json:"problem"`
}
