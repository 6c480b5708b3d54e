package page

import (
	"context"
	"maps"
	"sync"

	"github.com/makegood-dev/makegood/api"
)

// maxDefinitions is how many definitions are cached. Reading one compiles it, in milliseconds, and a list needs one per
// workflow.
const maxDefinitions = 256

// definitions caches definitions: one never changes under its hash.
type definitions struct {
	mu     sync.Mutex
	byHash map[string]api.Definition
}

// definition reads a definition by its hash. Callers must not change it. Errors: api.ErrNoDefinition.
func (p *Page) definition(ctx context.Context, hash string) (api.Definition, error) {
	p.definitions.mu.Lock()
	known, there := p.definitions.byHash[hash]
	p.definitions.mu.Unlock()
	if there {
		return known, nil
	}
	read, err := p.Jobs.Definition(ctx, hash)
	if err != nil {
		return read, err
	}
	p.definitions.mu.Lock()
	defer p.definitions.mu.Unlock()
	if len(p.definitions.byHash) >= maxDefinitions {
		for old := range maps.Keys(p.definitions.byHash) {
			delete(p.definitions.byHash, old)
			break
		}
	}
	p.definitions.byHash[hash] = read
	return read, nil
}
