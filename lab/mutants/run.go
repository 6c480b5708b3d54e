package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outcome is what became of a mutant.
type outcome struct {
	mutant
	// Asked are the layers that were asked, as far as one had to be.
	Asked []string `json:"asked,omitempty"`
	// KilledBy are the layers that failed; without -every it is the first alone.
	KilledBy []string `json:"killedBy,omitempty"`
	// Seen is what the first of these saw: the test that failed first, or that the run took too long.
	Seen string `json:"seen,omitempty"`
	// Broken: it does not compile, so it is no mutant.
	Broken bool `json:"broken,omitempty"`
	// Equivalent is why nobody could tell it from the right one; empty if nobody said so.
	Equivalent string `json:"equivalent,omitempty"`
	Diff       string `json:"diff,omitempty"`
}

// trial tries mutants on a tree that it never touches: go test reads their files in place of those of the tree.
type trial struct {
	root   string
	proofs map[string][]layer
	every  bool // ask every layer, though one has failed
	// layers is how many of a package's are asked; zero: all.
	layers int
	// until is when the last mutant is begun; zero: whenever.
	until time.Time
	mu    sync.Mutex
	took  map[string]time.Duration // of each run of the right code
}

const (
	// patience is how many times longer than with the right code a run may take before its mutant is said to hang.
	patience = 4
	// grace is what it may take beyond that: compiling, and whatever else the machine does.
	grace = 30 * time.Second
)

// try asks the layers, one after the other, whether they see the mutant.
func (t *trial) try(ctx context.Context, m mutant) (outcome, error) {
	o := outcome{mutant: m}
	file := filepath.Join(t.root, m.File)
	text, err := os.ReadFile(file)
	if err != nil {
		return o, err
	}
	o.Diff = m.diff(text)
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	wrong, overlay := filepath.Join(dir, "wrong.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		return o, err
	}
	if err := errors.Join(os.WriteFile(wrong, m.plant(text), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return o, err
	}
	for i, l := range t.proofs[m.Package] {
		if t.layers > 0 && i == t.layers {
			break
		}
		seen, broken, err := t.ask(ctx, l, overlay)
		if err != nil || broken {
			o.Broken = broken
			return o, err
		}
		o.Asked = append(o.Asked, l.name)
		if seen != "" {
			o.KilledBy, o.Seen = append(o.KilledBy, l.name), cmp.Or(o.Seen, seen)
			if !t.every {
				return o, nil
			}
		}
	}
	return o, nil
}

// ask runs a layer over a mutant, and returns what saw it; empty if nothing did.
func (t *trial) ask(ctx context.Context, l layer, overlay string) (seen string, broken bool, err error) {
	for _, run := range l.runs {
		within, err := t.within(ctx, run)
		if err != nil {
			return "", false, err
		}
		began := time.Now()
		out, err := t.run(ctx, within, append([]string{"-overlay", overlay}, run...))
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		if err != nil && time.Since(began) >= within {
			return tookTooLong, false, nil
		}
		if err != nil {
			return seenBy(out), bytes.Contains(out, []byte("[build failed]")), nil
		}
	}
	return "", false, nil
}

// tookTooLong is said of a mutant that no test has failed for, so that it can be told from one that a busy machine held
// up.
const tookTooLong = "took too long"

// failure is how go test names a test that failed.
var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// seenBy returns the test that failed first.
func seenBy(out []byte) string {
	if found := failure.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return "no test by name"
}

// within is how long a run may take: so many times what it takes with the right code, which is measured once, and
// must pass.
func (t *trial) within(ctx context.Context, run []string) (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := strings.Join(run, " ")
	took, ok := t.took[name]
	if !ok {
		began := time.Now()
		if out, err := t.run(ctx, time.Hour, run); err != nil {
			return 0, fmt.Errorf("go test %s fails without a mutant: %w\n%s", name, err, out)
		}
		took = time.Since(began)
		t.took[name] = took
	}
	return patience*took + grace, nil
}

// run runs go test, and ends it with all that it has started when it takes too long.
func (t *trial) run(ctx context.Context, within time.Duration, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-failfast", "-vet=off", "-count=1"}, args)...)
	cmd.Dir = t.root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.CombinedOutput()
}

// tryAll tries mutants, several at a time, until so many were tried that compile, and returns what became of them in
// their order.
func (t *trial) tryAll(ctx context.Context, mutants []mutant, enough, workers int, seen func(outcome)) ([]outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	all := make([]outcome, len(mutants))
	next, under, tried := 0, 0, 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		late := !t.until.IsZero() && time.Now().After(t.until)
		if late || ctx.Err() != nil || next == len(mutants) || tried+under >= enough {
			return 0, false
		}
		next, under = next+1, under+1
		return next - 1, true
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i, more := take(); more; i, more = take() {
				o, err := t.try(ctx, mutants[i])
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				all[i] = o
				under--
				if !o.Broken {
					tried++
					seen(o)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all[:next], context.Cause(ctx)
}
