package makegood

import (
	"fmt"
	"strings"
	"time"
)

// The limits that a program can check before it sends a request. A value over a limit is refused with a message that
// names the limit. The doc comments of fields name the other limits, and docs/reference/limits.md has all of them.
const (
	// MaxJobIDBytes is the maximum length of a job's id.
	MaxJobIDBytes = 128
	// MaxPayloadBytes is the maximum size of a job's input, a task's input and a step's output, each as JSON.
	MaxPayloadBytes = 256 << 10
	// MaxLargePayloadBytes is the maximum size of the bytes that a Payload refers to: bytes of any kind, stored apart from
	// jobs and messages.
	MaxLargePayloadBytes = 100 << 20
	// MaxProgressBytes is the maximum size of the progress that an agent reports, as JSON: its claim item stays within 1
	// KB, and a heartbeat one write unit.
	MaxProgressBytes = 512
	// MaxItems is how many items the list of a Map may have.
	MaxItems = 100_000
	// MaxWait is how far ahead the deadline of a step that waits may lie, however often it is moved.
	MaxWait = 365 * 24 * time.Hour
	// MaxStartDelay is how far ahead the start of a job may lie.
	MaxStartDelay = 365 * 24 * time.Hour
)

// CheckJobID refuses an invalid job id: anything but [A-Za-z0-9._:-]{1,128}, and "." and "..", which cannot stand in
// the path of a URL.
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
