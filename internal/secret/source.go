package secret

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/agent"
)

const (
	// keptFor is for how long a value is not asked for again: so long may the old one be used after it was changed.
	keptFor = 5 * time.Minute
	// maxKept is how many values are kept. Beyond, all are forgotten and asked for again.
	maxKept = 200
)

// Variable is the variable of the environment that holds a secret.
func Variable(name string) string { return "MAKEGOOD_SECRET_" + strings.ToUpper(name) }

// Environment returns secrets from variables of the environment, which lookup reads. An empty one is none.
func Environment(lookup func(string) (string, bool)) agent.Secrets {
	return func(_ context.Context, name string) (string, error) {
		value, _ := lookup(Variable(name))
		if value == "" {
			return "", fmt.Errorf("%w: %s is not set", agent.ErrNoSecret, Variable(name))
		}
		return value, nil
	}
}

// Kept keeps the values of a source for keptFor. A value that it could not give is asked for again each time.
func Kept(source agent.Secrets, now func() time.Time) agent.Secrets {
	k := &kept{source: source, now: now, values: map[string]keptValue{}}
	return k.secret
}

type kept struct {
	source agent.Secrets
	now    func() time.Time

	mu     sync.Mutex
	values map[string]keptValue
}

type keptValue struct {
	value string
	until time.Time
}

func (k *kept) secret(ctx context.Context, name string) (string, error) {
	if v, ok := k.known(name); ok {
		return v, nil
	}
	// Without the lock: a caller waiting for one secret must not hold up another.
	value, err := k.source(ctx, name)
	if err != nil {
		return "", err
	}
	k.keep(name, value)
	return value, nil
}

func (k *kept) known(name string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.values[name]
	return v.value, ok && k.now().Before(v.until)
}

func (k *kept) keep(name, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.values) >= maxKept {
		clear(k.values)
	}
	k.values[name] = keptValue{value, k.now().Add(keptFor)}
}
