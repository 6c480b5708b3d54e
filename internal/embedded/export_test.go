package embedded

func init() { comparesMessages = true }

// Die ends an engine as its death does: nothing is kept of it.
func (e *Engine) Die() error { return e.end(func() {}) }
