package embedded

func init() { comparesMessages = true }

// Die ends an engine as its death does: nothing is kept of it.
func (e *Engine) Die() error { return e.end(func() {}) }

// Alarms is how many times the alarm is set to.
func (e *Engine) Alarms() int {
	e.alarm.mu.Lock()
	defer e.alarm.mu.Unlock()
	return len(e.alarm.times)
}
