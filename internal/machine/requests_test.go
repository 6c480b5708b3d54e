package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// A job keeps who asked for what was granted last: a request that is refused, or comes twice, leaves it.
func TestAJobKeepsWhoWasGrantedARequestLast(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x", Action: "a"}}}
	now := time.UnixMilli(1_000_000).UTC()
	facts := machine.Facts{Secret: make([]byte, makegood.SecretBytes)}
	j, _ := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
	long := strings.Repeat("x", 2*makegood.MaxReasonBytes)
	for _, c := range []struct {
		asked job.Requested
		want  string
	}{
		{job.Requested{Verb: makegood.Pause, Request: "1", By: "ada"}, "ada"},
		{job.Requested{Verb: makegood.Pause, Request: "1", By: "eve"}, "ada"},
		{job.Requested{Verb: makegood.Resubmit, Request: "2", By: "eve"}, "ada"},
		{job.Requested{Verb: makegood.Resume, Request: "3"}, ""},
		{job.Requested{Verb: makegood.Pause, Request: "4", By: long}, makegood.Clip(long)},
	} {
		j, _ = machine.Apply(w, j, c.asked, facts, now)
		if j.RequestedBy != c.want {
			t.Errorf("%+.60v: got it asked by %.20q, want %.20q", c.asked, j.RequestedBy, c.want)
		}
	}
}
