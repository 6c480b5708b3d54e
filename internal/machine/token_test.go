package machine_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// The number before the first dot says how a token was made. Only a well-formed later one is a newer release's to judge:
// all else that is not genuine is forged.
func TestATokenOfALaterSchemeIsNeitherGenuineNorForged(t *testing.T) {
	j := job.Job{Secret: []byte("0123456789abcdef")}
	own := machine.Token(j, "s", 1)
	for token, later := range map[string]bool{
		own: false, "1.x": false, "": false, "x": false, "0.x": false, "-2.x": false, "02.x": false, "2": false, "2.": false, "+2.x": false,
		"12345.x": false, " 2.x": false, "2.x": true, "9999.x.y": true, "2" + own[1:]: true,
	} {
		r := job.Reply{Step: "s", Attempt: 1, Token: token}
		if got := machine.OfLaterScheme(r); got != later {
			t.Errorf("%q: got of a later scheme %t, want %t", token, got, later)
		}
		if got := machine.Genuine(j, r); got != (token == own) {
			t.Errorf("%q: got genuine %t", token, got)
		}
	}
}
