package machine_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
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

// The code of a token is the HMAC-SHA256 as everybody makes it, of every secret and text.
func TestACodeIsTheHMACOfItsText(t *testing.T) {
	for _, secret := range []int{1, 16, 63, 64, 65, 200} {
		for _, text := range []int{0, 1, 55, 64, 191, 192, 193, 1000} {
			j := job.Job{Secret: bytes.Repeat([]byte{0xa5}, secret)}
			step := strings.Repeat("s", text)
			mac := hmac.New(sha256.New, j.Secret)
			mac.Write([]byte(step + "\x00" + "7"))
			want := "1." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
			if got := machine.Token(j, step, 7); got != want {
				t.Errorf("secret of %d bytes, text of %d: got %s, want %s", secret, text, got, want)
			}
		}
	}
}
