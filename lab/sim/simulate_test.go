package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/term"
)

// The flags of make sim, which runs this package's tests as a command: only a test has virtual time.
var (
	seeds          = flag.Uint64("seeds", 0, "play so many seeds, and print what they came to as JSON")
	from           = flag.Uint64("from", 1, "the first of -seeds")
	seed           = flag.Uint64("seed", 0, "play this seed alone")
	untilViolation = flag.Bool("until-violation", false, "play seeds until the first that breaks a rule")
	withChanges    = flag.Bool("changes", false, "somebody hears of every change")
	withChildren   = flag.Bool("children", false, "jobs of their own do steps of some jobs")
	withMaps       = flag.Bool("maps", false, "steps of some jobs are done for each item of a list")
	withLimits     = flag.Bool("limits", false, "so many attempts of an agent are with it at once")
	withBreakers   = flag.Bool("breakers", false, "agents have breakers, and services outages")
	trace          = flag.Bool("trace", false, "print every event of -seed")
)

// summary is the last line that make sim prints.
type summary struct {
	Seeds      int          `json:"seeds"`
	Events     int          `json:"events"`
	Faults     map[Kind]int `json:"faults"`
	Violations int          `json:"violations"`
	Hash       string       `json:"hash"`
	Seconds    float64      `json:"seconds"`
}

var last *summary

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if last != nil {
		line, err := json.Marshal(last)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
	os.Exit(code)
}

func TestSimulate(t *testing.T) {
	if *seeds == 0 && *seed == 0 {
		return // TestWhateverGoesWrongEveryJobEnds plays those of a test run.
	}
	// Many small worlds live side by side: collecting them more seldom is faster by a fifth.
	debug.SetGCPercent(400)
	began := time.Now()
	s := newSum()
	var o Options
	if *seed > 0 {
		o = Options{Seed: *seed, Children: *withChildren, Maps: *withMaps}
		if *withChanges {
			o = hearingOf(*seed)
		}
		if *withLimits {
			o = limitsOf(*seed)
		}
		if *withBreakers {
			o = breakersOf(*seed)
		}
		if *trace {
			o.Trace = os.Stdout
		}
		s.add(*seed, run(t, o))
	} else {
		s = play(t, *from, *seeds, 2, progress(began))
	}
	report(t, s, o)
	last = &summary{
		Seeds: s.seeds, Events: s.events, Faults: s.faults, Violations: s.violations,
		Hash: fmt.Sprintf("%016x", s.hash), Seconds: time.Since(began).Round(time.Millisecond).Seconds(),
	}
}

// progress shows on a terminal how far it is, and nothing in a pipe.
func progress(began time.Time) func(*sum) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(*sum) {}
	}
	return func(s *sum) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seeds%100 == 0 {
			fmt.Fprintf(os.Stderr, "\r%d seeds, %d violations, %.0f seeds a second ", s.seeds, s.violations, float64(s.seeds)/time.Since(began).Seconds())
		}
	}
}
