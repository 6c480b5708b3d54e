package sim

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"time"
)

// Children begin side by side, so goroutines of one process may do the same at one moment. A seed does not decide their
// order: all that read definitions then share one call, and all get the same random bytes.

// moment keeps the calls and the random numbers of the goroutines of a process at one moment.
type moment struct {
	at    time.Time
	reads map[string]*sameRead
	// random has the numbers rolled so far; asked counts those that each goroutine has had.
	random []uint64
	asked  map[string]int
}

// sameRead is a call that is made for several goroutines; done closes when it has ended.
type sameRead struct {
	done chan struct{}
	err  error
}

// now returns the moment that it is. w.mu is held.
func (m *moment) now() *moment {
	if now := time.Now(); !m.at.Equal(now) {
		*m = moment{now, map[string]*sameRead{}, nil, map[string]int{}}
	}
	return m
}

// read asks for values without any effect: one call for all goroutines that make it at one moment.
func read[T any](ctx context.Context, l *life, op, on string, do func() (T, error)) (got T, err error) {
	if !l.w.children {
		return ask(ctx, l, op, on, do)
	}
	l.w.mu.Lock()
	reads := l.moment.now().reads
	r, under := reads[op+" "+on]
	if !under {
		r = &sameRead{make(chan struct{}), errNoAnswer} // of a process that dies meanwhile
		reads[op+" "+on] = r
	}
	l.w.mu.Unlock()
	if !under {
		defer close(r.done)
		got, r.err = ask(ctx, l, op, on, do)
		return got, r.err
	}
	<-r.done
	l.alive()
	if r.err != nil {
		return got, r.err
	}
	return do()
}

// Definition is what store.Definitions says, in a world.
func (l *life) Definition(ctx context.Context, hash string) ([]byte, error) {
	return read(ctx, l, "definition", "", func() ([]byte, error) { return l.w.store.Definition(ctx, hash) })
}

// CurrentDefinition is what store.Definitions says, in a world.
func (l *life) CurrentDefinition(ctx context.Context, name string) (string, error) {
	return read(ctx, l, "current", name, func() (string, error) { return l.w.store.CurrentDefinition(ctx, name) })
}

// bytes returns so many random bytes.
func (l *life) bytes(next func() uint64, n int) []byte {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	m := l.moment.now()
	who := ""
	if l.w.children {
		who = goroutine()
	}
	i := m.asked[who]
	m.asked[who] = i + (n+7)/8
	for len(m.random) < i+(n+7)/8 {
		m.random = append(m.random, next())
	}
	var b []byte
	for ; len(b) < n; i++ {
		b = binary.BigEndian.AppendUint64(b, m.random[i])
	}
	return b[:n]
}

// goroutine names the goroutine that asks.
func goroutine() string {
	var b [32]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
	return name
}
