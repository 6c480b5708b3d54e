package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The doc comments of fields name limits as figures, since the constants are internal.
func TestTheFiguresOfDocCommentsAreTheLimits(t *testing.T) {
	days := func(d time.Duration) string { return fmt.Sprintf("%d days", int(d.Hours()/24)) }
	name := limits.MaxNameBytes - 1
	run := []string{
		fmt.Sprintf("1 to 1,000. Default: %d.", limits.DefaultAgentConcurrency),
		fmt.Sprintf("At most %s. Default: %d seconds.", days(limits.MaxGrace), int(limits.DefaultGrace.Seconds())),
	}
	for file, figures := range map[string][]string{
		"workflow.go": {
			fmt.Sprintf("Name is [a-z][a-z0-9-]{0,%d}.", name),
			fmt.Sprintf("at most %d KiB. Empty: any input", limits.MaxInputSchemaBytes>>10),
			fmt.Sprintf("in which they were written; at most %d.", limits.MaxSteps),
			fmt.Sprintf("by their kind; at most %d.", limits.MaxRoutes),
			fmt.Sprintf("when it begins; at most %d.", limits.MaxAsked),
			fmt.Sprintf("they are reminded; at most %d,", limits.MaxReminders),
			fmt.Sprintf("JSON of at most %d bytes.", limits.MaxInlineBytes),
			fmt.Sprintf("may take in all, up to %s, which is then the default.", days(limits.MaxClaim)),
			fmt.Sprintf("a For of %d minutes,", int(domain.DefaultRetryFor.Std().Minutes())),
			fmt.Sprintf("or of %d hour for an undo", int(domain.DefaultUndoRetryFor.Std().Hours())),
			fmt.Sprintf("1 to %d. Default: %[1]d where For is given", limits.MaxAttempts),
			fmt.Sprintf("At most %s. Zero: as long as there are attempts", days(limits.MaxRetryFor)),
			fmt.Sprintf("of the latter is %d seconds.", int(domain.DefaultRestartWait.Std().Seconds())),
			fmt.Sprintf("counted too; 2 to %d.", limits.MaxRounds),
			"Default: 10m.", "Default: 30s.", "Default: 1s.", "Default: 1m,",
		},
		"routes.go": {"1 to 10,000. Default: 10,000.", fmt.Sprintf("JSON of at most %d bytes.", limits.MaxInlineBytes)},
		"schedule.go": {
			fmt.Sprintf("%d seconds to %s, counted", int(limits.MinScheduleEvery.Seconds()), days(limits.MaxScheduleEvery)),
			fmt.Sprintf("more than %d minutes late", int(limits.MissedAfter.Minutes())),
			fmt.Sprintf("1 to %d. Default: %[1]d.", limits.MaxMissed),
		},
		"sent.go":                          {fmt.Sprintf("more than %d of them", limits.MaxSentInputs), fmt.Sprintf("more than %d KiB", limits.MaxSentInputBytes>>10)},
		"submission.go":                    {fmt.Sprintf("at most %d, each with a name", limits.MaxLabels), fmt.Sprintf("a value of 1 to %d bytes", limits.MaxLabelBytes)},
		"task.go":                          {fmt.Sprintf("at most %d.", limits.MaxTaskSecrets)},
		"payload.go":                       {fmt.Sprintf("At most %d bytes.", limits.MaxPayloadTypeBytes)},
		"change.go":                        {fmt.Sprintf("Reason at most %d bytes.", limits.MaxChangeReasonBytes), fmt.Sprintf("more than %d,", limits.MaxUnpublished)},
		"api/who.go":                       {fmt.Sprintf("at most %d bytes,", limits.MaxWhoBytes)},
		"api/payload.go":                   {fmt.Sprintf("after %s.", days(limits.KeepPayload))},
		"agent/payload.go":                 {fmt.Sprintf("(%s)", days(limits.KeepPayload))},
		"agent/secrets.go":                 {fmt.Sprintf("at most %d KiB of UTF-8", limits.MaxSecretBytes>>10)},
		"agent/dynamofence/dynamofence.go": {fmt.Sprintf("at least %s;", days(limits.MinKeepEffect))},
		"agent/sqlitefence/sqlitefence.go": {fmt.Sprintf("at least %s;", days(limits.MinKeepEffect))},
		"onhttp/onhttp.go":                 run,
		"onqueue/onqueue.go":               run,
		"engine/notify.go":                 {fmt.Sprintf("a job keeps %d changes", limits.MaxUnpublished)},
	} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		// A comment may break its lines anywhere.
		flat := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", " ")), " ")
		for _, figure := range figures {
			if !strings.Contains(flat, figure) {
				t.Errorf("%s: got no %q in a comment", file, figure)
			}
		}
	}
	if limits.MaxRepeats != 10_000 || limits.MaxAgentConcurrency != 1000 ||
		limits.MaxReasonBytes != 1024 || limits.MaxAgentTokenBytes != 1024 {
		t.Error("10,000 repeats, 1,000 attempts at once, 1,024 bytes of a reason or a token: the doc comments say so")
	}
}
