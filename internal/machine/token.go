package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"
)

// scheme is the number of the way in which tokens are made. It stands before each, with a dot behind it, so that another
// way can be told from this one.
const scheme = 1

// maxSchemeDigits is how many digits the number of a scheme can have.
const maxSchemeDigits = 4

// tokenBytes is how much of the HMAC a token has.
const tokenBytes = 16

// Token returns what the reply to an attempt must carry, so that only who got its task can answer it: an HMAC of step and
// attempt under the job's secret. Empty for a job that has no secret.
func Token(j job.Job, step string, attempt int) string {
	if len(j.Secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, j.Secret)
	// A step's name has no such byte, so no two attempts are written the same.
	mac.Write([]byte(step + "\x00" + strconv.Itoa(attempt)))
	return strconv.Itoa(scheme) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:tokenBytes])
}

// Genuine reports whether a reply carries the token of the attempt that it speaks of.
func Genuine(j job.Job, r job.Reply) bool {
	want := Token(j, r.Step, r.Attempt)
	return want != "" && hmac.Equal([]byte(want), []byte(r.Token))
}

// OfLaterScheme reports whether the token of a reply is made in a way that only a later release knows: whether it is
// genuine cannot be said here, so the reply must neither count nor be dropped. Anything else that is not Genuine is forged.
func OfLaterScheme(r job.Reply) bool {
	number, rest, _ := strings.Cut(r.Token, ".")
	if rest == "" || len(number) > maxSchemeDigits {
		return false
	}
	of, err := strconv.Atoi(number)
	return err == nil && of > scheme && strconv.Itoa(of) == number
}
