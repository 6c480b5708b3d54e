package makegood

import (
	"fmt"
	"strings"
	"time"
)

// The limits that a program can act on before it sends something. A value over a limit is refused with a message that
// names the limit. The doc comments of fields name the other limits, and docs/reference/limits.md has all of them.
const (
	// MaxJobIDBytes is how long a job's id may be.
	MaxJobIDBytes = 128
	// MaxPayloadBytes is how large a job's input, a task's input and a step's output may each be, as JSON.
	MaxPayloadBytes = 256 << 10
	// MaxLargePayloadBytes is how large what a Payload refers to may be: bytes of anything, kept apart from jobs and messages.
	MaxLargePayloadBytes = 100 << 20
	// MaxProgressBytes is how large the progress may be that an agent reports, as JSON: its claim item stays within 1 KB, and
	// a heartbeat one write unit.
	MaxProgressBytes = 512
	// MaxWait is how far ahead the deadline of a step that waits may lie, however often it is moved.
	MaxWait = 365 * 24 * time.Hour
	// MaxStartDelay is how far ahead the start of a job may lie.
	MaxStartDelay = 365 * 24 * time.Hour
)

// CheckJobID refuses what cannot be a job's id: anything but [A-Za-z0-9._:-]{1,128}, and "." and "..",
// which cannot stand in the path of a URL.
func CheckJobID(id string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	switch {
	case id == "":
		return fmt.Errorf("is empty: want [A-Za-z0-9._:-]{1,%d}", MaxJobIDBytes)
	case len(id) > MaxJobIDBytes:
		return fmt.Errorf("has %d bytes, the limit is %d", len(id), MaxJobIDBytes)
	case id == "." || id == "..", strings.ContainsFunc(id, func(c rune) bool { return !strings.ContainsRune(allowed, c) }):
		return fmt.Errorf("%q cannot be a job's id: want [A-Za-z0-9._:-]{1,%d}, and neither . nor .. alone", id, MaxJobIDBytes)
	}
	return nil
}
