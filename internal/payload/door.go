package payload

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood"
)

// Doors allow writing and reading a payload at the store itself, with no byte through the process that allows it: a
// function's request and response have at most 6 MB.
type Doors interface {
	// WriteDoor allows one upload of exactly these bytes to a place, for a while. The store, and not the uploader, refuses
	// other bytes. It stores no bytes, and an unused door is free. If the same bytes are there already, the door's
	// Method is empty: no upload is needed, and they stay as with Keep. ErrTooLarge, ErrDenied.
	WriteDoor(ctx context.Context, at Place, w Written) (Door, error)
	// ReadDoor allows reading a payload, for a while. ErrNotFound, ErrAltered, ErrDenied.
	ReadDoor(ctx context.Context, job string, p makegood.Payload) (Door, error)
}

// Door is one HTTP request that its holder may make, without any right of their own. Its URL is a secret while it
// lasts: keep it out of logs and errors.
type Door struct {
	Method string
	URL    string
	// Header has the headers that the request must carry.
	Header http.Header
	// Ends is when it closes.
	Ends time.Time
}

// String describes a door, without its URL.
func (d Door) String() string {
	if d.Method == "" {
		return "no door"
	}
	return "a door to " + d.Method + " until " + d.Ends.UTC().Format(time.RFC3339)
}

// GoString is String.
func (d Door) GoString() string { return d.String() }

// LogValue is String.
func (d Door) LogValue() slog.Value { return slog.StringValue(d.String()) }
