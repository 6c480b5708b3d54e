package command

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// What a step was asked is a line, which says whether that is as it was sent.
func TestWhatAStepWasAskedIsALine(t *testing.T) {
	got := strings.Join(sentLines([]makegood.SentInput{
		{Step: "charge", Value: []byte(`{"amount": 7, "key": "[secret bank]"}`), Bytes: 20, AsSent: true},
		{Step: "charge", Undo: true, Bytes: 9000, AsSent: true},
		{Step: "ship", Value: []byte(`{"to": "LIS"}`), Changed: "the job has got another definition or another input since"},
		{Step: "pack", Problem: "step pack: no such field"},
	}), "\n")
	want := `  charge was asked  {"amount":7,"key":"[secret bank]"}
  undo of charge was asked  (9000 bytes)
  ship would be asked now  {"to":"LIS"}  (the job has got another definition or another input since)
  pack would be asked now  (step pack: no such field)`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
