package groupnotify

import (
	"context"
	"errors"
	"sync"
)

// errMoved: somebody else has written meanwhile.
var errMoved = errors.New("another alert has written here")

// memory keeps places for one process.
type memory struct {
	mu    sync.Mutex
	texts map[string]string
}

// NewPlaces returns Places for a process that alerts alone. They are gone when it ends: then what was told is told again.
// There are at most MaxCauses of them.
func NewPlaces() Places { return &memory{texts: map[string]string{}} }

// Place returns what is kept.
func (m *memory) Place(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts[name], nil
}

// KeepPlace keeps a text, if seen is what is there.
func (m *memory) KeepPlace(_ context.Context, name, seen, place string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[name] != seen {
		return errMoved
	}
	m.texts[name] = place
	return nil
}
