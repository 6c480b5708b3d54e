package embedded

import "github.com/makegood-dev/makegood/internal/changes"

// publisher returns the receiver of every change; nil: changes are not published.
func (e *Engine) publisher() changes.Publisher {
	if e.config.Changes == nil && !e.config.Live {
		return nil
	}
	e.hub = changes.NewHub()
	if e.config.Changes == nil {
		return changes.Live{Hub: e.hub}
	}
	e.relay = changes.NewRelay(e.config.Changes, e.config.Logger)
	return changes.Live{Hub: e.hub, Next: e.relay}
}

// Hub shows changes to watchers; nil if no changes are kept.
func (e *Engine) Hub() *changes.Hub { return e.hub }
