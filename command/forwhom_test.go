package command

import (
	"testing"

	"github.com/makegood-dev/makegood"
)

func TestAJobSaysForWhomItIs(t *testing.T) {
	for want, job := range map[string]makegood.Job{
		"":                                    {},
		"tenant acme":                         {Tenant: "acme"},
		"tenant acme, priority idle":          {Tenant: "acme", Priority: makegood.PriorityIdle},
		"tenant acme, label a=1, label b=2 3": {Tenant: "acme", Labels: map[string]string{"b": "2\n3", "a": "1"}},
	} {
		if got := forWhom(job); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
