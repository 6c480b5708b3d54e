package embedded

import "github.com/makegood-dev/makegood/internal/store"

// auditor is the store that the engine works on, if it has an audit, or else its file.
func (e *Engine) auditor() store.Auditor {
	if a, ok := e.store.(store.Auditor); ok {
		return a
	}
	return e.file
}
