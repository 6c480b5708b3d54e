package queue

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// MaxDelay is the longest delay that a message may have.
	MaxDelay = 15 * time.Minute
	// maxGroupBytes is how long a group may be.
	maxGroupBytes = 128
)

// Check returns a *RefusedError for a message that SQS would refuse, whatever its state, and nil for all
// others. Every Sender asks it before it sends, so that all refuse the same messages in the same words.
func Check(m Message) error {
	switch {
	case m.Body == "":
		return Refused("the body is empty")
	case len(m.Body) > limits.MaxMessageBytes:
		return Refused("the body has %d bytes, the limit is %d", len(m.Body), limits.MaxMessageBytes)
	case !utf8.ValidString(m.Body):
		return Refused("the body is not UTF-8")
	case m.Delay < 0 || m.Delay > MaxDelay:
		return Refused("delay %v, want 0 to %v", m.Delay, MaxDelay)
	case len(m.Group) > maxGroupBytes:
		return Refused("the group has %d bytes, the limit is %d", len(m.Group), maxGroupBytes)
	}
	if i := strings.IndexFunc(m.Body, illegal); i >= 0 {
		r, _ := utf8.DecodeRuneInString(m.Body[i:])
		return Refused("the body has the character %U at byte %d", r, i)
	}
	if i := strings.IndexFunc(m.Group, illegalInGroup); i >= 0 {
		return Refused("the group %q has a character at byte %d that is not a letter, digit or mark of ASCII", m.Group, i)
	}
	return nil
}

func illegal(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

func illegalInGroup(r rune) bool { return r <= ' ' || r > '~' }
