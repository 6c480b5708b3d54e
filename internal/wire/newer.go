package wire

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
)

// ErrNewer: a later release wrote the message, and this one must not decide about it. It is left (Leave): neither
// poison nor dropped.
var ErrNewer = errors.New("message of a newer release")

// errNewerDeadline is the ErrNewer of a deadline, or of a due schedule, which the Supervisor sends again at each sweep.
var errNewerDeadline = fmt.Errorf("%w: a deadline", ErrNewer)

// known are the types of message that this release knows. A known type in the wrong place is poison.
var known = []string{
	typeTask, typeSecretTask, typeSubmitted, typeStepSucceeded, typeStepFailed, typeDeadlinePassed, typeChildEnded, typeAdmitted, typeScheduleDue, typeHoldsDue, TypeSubmit,
	typeStepWaiting, typeStepHeld, typeStepCompleted, typeWaitExtended,
	typeAnnouncement, typeAgentSilent, typeAgentPaused, typeQuestion, "Quarantined",
}

// inner are the events that the engine tells itself, and no release reads from a message: their sender is a forger.
var inner = []string{"AttemptClosed", "Asked", "NotAsked", "DispatchRefused", "Interrupted", "NotHeard", "Requested", "Told"}

// maxVersion is the highest version, and wellFormed the form of the types of any version: any other is garbage.
const maxVersion = 9999

var wellFormed = regexp.MustCompile(`^[A-Z][A-Za-z]{0,62}$`)

// judge returns the fault in the head of a message that should be of one of these types: ErrPoison or ErrNewer, nil if
// there is none. No more can be asked of a message of a later version.
func judge(h head, types []string) error {
	switch {
	case h.V < 1 || h.V > maxVersion:
		return poison("version %d, want %d", h.V, Version)
	case h.Type == "":
		return poison("a message must name its type")
	case !wellFormed.MatchString(h.Type):
		return poison("type %.80q, want %s", h.Type, wellFormed)
	case slices.Contains(inner, h.Type):
		return poison("type %q never crosses a queue", h.Type)
	case h.V > Version && (h.Type == typeDeadlinePassed || h.Type == typeScheduleDue || h.Type == typeHoldsDue):
		return fmt.Errorf("%w: version %d, want %d", errNewerDeadline, h.V, Version)
	case h.V > Version:
		return newer("version %d, want %d", h.V, Version)
	case slices.Contains(types, h.Type):
		return nil
	case slices.Contains(known, h.Type):
		return poison("type %q, want one of %v", h.Type, types)
	default:
		return newer("unknown type %q", h.Type)
	}
}

func newer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNewer, fmt.Sprintf(format, args...))
}

// leftSince is the very front of a message that was left. It counts there alone: the sender of the message could write
// the same further behind.
const leftSince = `{"leftSince":"`

// Leave returns a message as it is to be sent again, byte for byte but for the time since when it is left, and that
// time. A time in it that cannot be read, or is yet to come, is none. The message must be one that ErrNewer was said
// of, or that was read.
func Leave(body string, now time.Time) (again string, since time.Time) {
	body = strings.TrimLeft(body, " \t\r\n")
	if said, ok := strings.CutPrefix(body, leftSince); ok {
		text, _, _ := strings.Cut(said, `"`)
		if since, err := time.Parse(time.RFC3339, text); err == nil && !since.After(now) {
			return body, since
		}
	}
	since = domain.Instant(now).Truncate(time.Second)
	return leftSince + since.Format(time.RFC3339) + `",` + strings.TrimPrefix(body, "{"), since
}
