package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// summary is what a run came to, and what -json prints.
type summary struct {
	Seed     uint64   `json:"seed"`
	Packages []string `json:"packages"`
	Every    bool     `json:"every"`
	// Mutants is how many there are, Tried how many of them were tried and compile.
	Mutants    int     `json:"mutants"`
	Tried      int     `json:"tried"`
	Broken     int     `json:"broken"`
	Killed     int     `json:"killed"`
	Equivalent int     `json:"equivalent"`
	Percent    float64 `json:"percent"`
	Layers     []tally `json:"layers"`
	// Survivors are neither killed nor said to be equivalent; Wrong are said to be, and were killed.
	Survivors []outcome `json:"survivors"`
	Wrong     []outcome `json:"wrong"`
	Seconds   float64   `json:"seconds"`
}

// tally is what a layer killed, and what it alone did; that is known only where every layer was asked.
type tally struct {
	Layer  string `json:"layer"`
	Asked  int    `json:"asked"`
	Killed int    `json:"killed"`
	Alone  int    `json:"alone"`
}

func sum(o options, mutants int, outcomes []outcome, why map[string]string, took time.Duration) summary {
	s := summary{Seed: o.seed, Packages: o.packages, Every: o.every, Mutants: mutants, Seconds: took.Round(time.Second).Seconds()}
	for _, one := range outcomes {
		one.Equivalent = why[one.key()]
		if one.Broken {
			s.Broken++
			continue
		}
		s.Tried++
		s.note(one)
		switch {
		case len(one.KilledBy) > 0 && one.Equivalent != "":
			s.Wrong = append(s.Wrong, one)
		case len(one.KilledBy) > 0:
			s.Killed++
		case one.Equivalent != "":
			s.Equivalent++
		default:
			s.Survivors = append(s.Survivors, one)
		}
	}
	if counted := s.Tried - s.Equivalent; counted > 0 {
		s.Percent = 100 * float64(s.Killed) / float64(counted)
	}
	return s
}

// note counts the layers that were asked of a mutant, and those that saw it.
func (s *summary) note(o outcome) {
	for _, name := range o.Asked {
		i := slices.IndexFunc(s.Layers, func(t tally) bool { return t.Layer == name })
		if i < 0 {
			s.Layers = append(s.Layers, tally{Layer: name})
			i = len(s.Layers) - 1
		}
		s.Layers[i].Asked++
		if !slices.Contains(o.KilledBy, name) {
			continue
		}
		s.Layers[i].Killed++
		if len(o.KilledBy) == 1 {
			s.Layers[i].Alone++
		}
	}
}

// line tells of one mutant as soon as it is known.
func line(o outcome) string {
	became := "SURVIVED"
	if len(o.KilledBy) > 0 {
		became = fmt.Sprintf("killed by %s (%s)", strings.Join(o.KilledBy, ", "), o.Seen)
	}
	return fmt.Sprintf("%s:%d %s: %s => %s: %s\n", o.File, o.Line, o.Func, o.Old, o.New, became)
}

func (s summary) print(out io.Writer) {
	for _, o := range s.Wrong {
		fmt.Fprintf(out, "%s:%d is said to be equivalent, and was killed by %s\n  %s\n", o.File, o.Line, o.KilledBy[0], o.key())
	}
	for _, o := range s.Survivors {
		fmt.Fprintf(out, "%s:%d survives\n  %s\n%s", o.File, o.Line, o.key(), o.Diff)
	}
	alone := "seen by none before it"
	if s.Every {
		alone = "seen by it alone"
	}
	fmt.Fprintf(out, "| layer | asked | killed | %s |\n|---|---:|---:|---:|\n", alone)
	for _, l := range s.Layers {
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", l.Layer, l.Asked, l.Killed, l.Alone)
	}
	fmt.Fprintf(out, "seed %d: %d of %d mutants tried (%d more do not compile), %d killed, %d equivalent, %d survive: %.1f %% killed in %.0f s\n",
		s.Seed, s.Tried, s.Mutants, s.Broken, s.Killed, s.Equivalent, len(s.Survivors), s.Percent, s.Seconds)
}

// failed says what is wrong with the tests, or with what is said to be equivalent.
func (s summary) failed() error {
	if len(s.Wrong) > 0 {
		return fmt.Errorf("%d mutants in %s were killed: they are not equivalent", len(s.Wrong), equivalents)
	}
	if want := wantedOf(s.Packages); s.Tried > s.Equivalent && s.Percent < float64(want) {
		return fmt.Errorf("%.1f %% were killed, wanted are %d %%", s.Percent, want)
	}
	return nil
}
