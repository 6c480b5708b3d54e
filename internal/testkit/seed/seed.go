// Package seed gives random tests their seeds. Only tests import it.
//
// A test that draws is the same test in every run, so that a failure of CI is about the change that CI looks at, and
// not about a draw of one in many thousands (decision 0035). MAKEGOOD_SEED=random draws anew, which is what `make seek`
// does; MAKEGOOD_SEED=N plays one seed again.
package seed

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Variable is the environment variable that chooses seeds: "random", or a number.
const Variable = "MAKEGOOD_SEED"

// Of returns the seed of a test, never 0, and logs how to play it again.
func Of(t testing.TB) uint64 {
	t.Helper()
	n, err := of(t.Name(), os.Getenv(Variable))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	t.Logf("seed %d; again with: %s=%d go test -run '^%s$' in the folder of this test", n, Variable, n, name)
	return n
}

// of is the seed of the test of this name, where the environment asks for this.
func of(test, asked string) (uint64, error) {
	switch asked {
	case "":
		name := fnv.New64a()
		_, _ = name.Write([]byte(test)) // never fails, says its documentation
		return max(name.Sum64(), 1), nil
	case "random":
		return max(rand.Uint64(), 1), nil
	default:
		n, err := strconv.ParseUint(asked, 10, 64)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%s is %q, and must be random, or a number from 1 to 2^64-1", Variable, asked)
		}
		return n, nil
	}
}

// Usual reports whether tests draw what they do in every whole run, so that it can be compared with the docs.
func Usual() bool {
	return !testing.Short() && os.Getenv(Variable) == "" && flag.Lookup("rapid.seed").Value.String() == "0"
}

// Check is rapid.Check with the seed of the test; the flag -rapid.seed, which rapid names when a property fails, goes
// before it. That flag is the process's: a test that checks a property must not be parallel.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	asked := flag.Lookup("rapid.seed").Value
	if asked.String() == "0" {
		set(t, asked, strconv.FormatUint(Of(t), 10))
		defer set(t, asked, "0")
	}
	rapid.Check(t, property)
}

func set(t *testing.T, f flag.Value, to string) {
	t.Helper()
	if err := f.Set(to); err != nil {
		t.Fatal(err)
	}
}
