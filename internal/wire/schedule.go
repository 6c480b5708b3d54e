package wire

import (
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// ScheduleDue is the hint that a schedule is due: its name, and the key that was seen. The receiver looks at the
// schedule, so a forged hint has no effect.
type ScheduleDue struct {
	Schedule string
	Key      time.Time
}

type scheduleDue struct {
	head
	Schedule string    `json:"schedule"`
	Key      time.Time `json:"key"`
}

// EncodeScheduleDue writes the hint that a schedule is due.
func EncodeScheduleDue(s ScheduleDue) (string, error) {
	return encode(scheduleDue{head{Version, typeScheduleDue}, s.Schedule, s.Key})
}

// decodeScheduleDue reads what EncodeScheduleDue writes. ErrPoison, ErrNewer.
func decodeScheduleDue(body string) (ScheduleDue, error) {
	var m scheduleDue
	if err := decode(body, &m, typeScheduleDue); err != nil {
		return ScheduleDue{}, err
	}
	if err := limits.ScheduleName.Check(m.Schedule); err != nil {
		return ScheduleDue{}, poison("%v", err)
	}
	key, err := instant("key", m.Key)
	if err != nil {
		return ScheduleDue{}, err
	}
	return ScheduleDue{Schedule: m.Schedule, Key: key}, nil
}

type holdsDue struct {
	head
	Key time.Time `json:"key"`
}

// EncodeHoldsDue writes the hint that jobs which were held are to go on, and the key that was seen. The receiver looks
// at the holds, so a forged hint has no effect.
func EncodeHoldsDue(key time.Time) (string, error) {
	return encode(holdsDue{head{Version, typeHoldsDue}, key})
}

// decodeHoldsDue reads what EncodeHoldsDue writes. ErrPoison, ErrNewer.
func decodeHoldsDue(body string) (time.Time, error) {
	var m holdsDue
	if err := decode(body, &m, typeHoldsDue); err != nil {
		return time.Time{}, err
	}
	return instant("key", m.Key)
}

// HintOf reads a hint that a schedule or a pause is due. ok is false for any other message, and for a hint that cannot
// be read, for which DecodeIncoming gives the reason.
func HintOf(body string) (in Incoming, ok bool) {
	if !strings.Contains(body, typeScheduleDue) && !strings.Contains(body, typeHoldsDue) {
		return Incoming{}, false // Most messages are events, which are not read twice.
	}
	in, err := DecodeIncoming(body)
	return in, err == nil && (in.Schedule != nil || in.HoldsDue != nil)
}
