// Command mutants makes wrong versions of the code that decides, one small change each, and asks the tests whether they
// see them: first the package's own, then those of the packages above it, then a share of the model check and of the
// simulation. What no layer sees survives, and says what no test holds.
//
// It touches nothing in the tree (go test -overlay), and decides nothing about the tests: docs/proof.md says what they
// are.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// wanted is how many of a hundred mutants of the code that decides must be killed, and wantedElsewhere how many of
// other code.
const (
	wanted          = 95
	wantedElsewhere = 90
)

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 200, "how many mutants to try; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "decides which")
	packages := flag.String("packages", strings.Join(deciding(), ","), "of which packages")
	flag.StringVar(&o.only, "only", "", "only those whose name matches this expression")
	flag.IntVar(&o.layers, "layers", 0, "ask only so many layers, the fastest first; 0: all")
	flag.BoolVar(&o.every, "every", false, "ask every layer of each mutant, though one has seen it")
	flag.BoolVar(&o.list, "list", false, "name the mutants, and try none")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.DurationVar(&o.within, "within", 18*time.Minute, "begin no mutant after that; 0: however long it takes")
	flag.IntVar(&o.workers, "workers", 2, "how many to try at the same time")
	flag.Parse()
	o.packages = strings.Split(*packages, ",")
	if err := run(context.Background(), o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	sample, workers   int
	layers            int
	within            time.Duration
	seed              uint64
	packages          []string
	only              string
	every, list, json bool
}

// wantedOf is how many of a hundred mutants of some packages must be killed.
func wantedOf(packages []string) int {
	for _, name := range packages {
		if !slices.Contains(deciding(), name) {
			return wantedElsewhere
		}
	}
	return wanted
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	why, err := readEquivalents(filepath.Join(root, equivalents))
	if err != nil {
		return err
	}
	all, err := listed(root, covered())
	if err != nil {
		return err
	}
	if names := unknown(why, all); len(names) > 0 {
		return fmt.Errorf("%s names what is no mutant (any more): %s", equivalents, strings.Join(names, "; "))
	}
	chosen, err := choose(root, o)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range chosen {
			fmt.Fprintln(out, m.key())
		}
		return nil
	}
	began := time.Now()
	outcomes, err := newTrial(root, o).tryAll(ctx, chosen, cmp.Or(o.sample, len(chosen)), o.workers, func(one outcome) {
		fmt.Fprint(progress, line(one))
	})
	if err != nil {
		return err
	}
	s := sum(o, len(chosen), outcomes, why, time.Since(began))
	if o.json {
		if err := json.NewEncoder(out).Encode(s); err != nil {
			return err
		}
	} else {
		s.print(out)
	}
	return s.failed()
}

func newTrial(root string, o options) *trial {
	t := &trial{root: root, proofs: proofs, every: o.every, layers: o.layers, took: map[string]time.Duration{}}
	if o.within > 0 {
		t.until = time.Now().Add(o.within)
	}
	return t
}

// choose lists the mutants in the order in which they are tried: chance decides, and the seed decides chance.
func choose(root string, o options) ([]mutant, error) {
	all, err := listed(root, o.packages)
	if err != nil {
		return nil, err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	var chosen []mutant
	for _, m := range all {
		if only.MatchString(m.key()) {
			chosen = append(chosen, m)
		}
	}
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen, nil
}

func listed(root string, packages []string) ([]mutant, error) {
	var all []mutant
	for _, name := range packages {
		if proofs[name] == nil {
			return nil, fmt.Errorf("no layers are known for %q, only for %v", name, covered())
		}
		found, err := mutantsOf(root, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
