package plain_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/plain"
)

func TestTheSizeOfAnExpressionGrowsWithWhatItRepeats(t *testing.T) {
	for source, want := range map[string]plain.PatternSize{
		``:                 {States: 1},
		`abc`:              {States: 4},
		`(a)(b)?`:          {States: 8, Groups: 2},
		`x{1,1000}`:        {States: 3000},
		`x{500,}`:          {States: 1500},
		`(x{0,100}y){1,5}`: {States: 5 * (1 + 1 + 1 + 300 + 2), Groups: 1},
		`(?=a)`:            {}, // is none: package regexp says why
		`(`:                {},
	} {
		if got, err := plain.SizeOf(source); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", source, got, err, want)
		}
	}
}

func TestAnExpressionThatIsTooLargeIsRefused(t *testing.T) {
	for source, want := range map[string]string{
		strings.Repeat("x", plain.MaxPatternStates-1): "",
		strings.Repeat("x", plain.MaxPatternStates):   "a regular expression of more than 10000 states",
		strings.Repeat("x{1000}", 5):                  "a regular expression of more than 10000 states",
		strings.Repeat("(", plain.MaxPatternBytes):    "",
		strings.Repeat("(", plain.MaxPatternBytes+1):  "a regular expression of 16385 bytes, the limit is 16384",
		strings.Repeat("(x{30}){33}", 6):              "a regular expression of more than 10000 states",
	} {
		if _, err := plain.SizeOf(source); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%.20s… of %d bytes: %v, want %q", source, len(source), err, want)
		}
	}
}
