package groupnotify

import (
	"context"
	"errors"
	"sync"
)

// errMoved: another process has written meanwhile.
var errMoved = errors.New("another alert has written here")

// memory keeps places for one process.
type memory struct {
	mu    sync.Mutex
	texts map[string]string
}

// NewPlaces returns Places for a process that alerts alone. They are gone when it ends: then alerts are repeated.
// There are at most MaxCauses places.
func NewPlaces() Places { return &memory{texts: map[string]string{}} }

// Place returns the stored text.
func (m *memory) Place(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts[name], nil
}

// KeepPlace stores a text, if seen is the present one.
func (m *memory) KeepPlace(_ context.Context, name, seen, place string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[name] != seen {
		return errMoved
	}
	m.texts[name] = place
	return nil
}
