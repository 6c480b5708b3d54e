package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/makegood-dev/makegood"
)

// tokenScheme is how tokens are made; it stands before each, so that another way can be told from this one.
const tokenScheme = "1."

// tokenBytes is how much of the HMAC a token has.
const tokenBytes = 16

// Token gives what the reply to an attempt must carry, so that only who got its task can answer it: an HMAC of step and
// attempt under the job's secret. Empty for a job that has no secret.
func Token(job makegood.Job, step string, attempt int) string {
	if len(job.Secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, job.Secret)
	// A step's name has no such byte, so no two attempts are written the same.
	mac.Write([]byte(step + "\x00" + strconv.Itoa(attempt)))
	return tokenScheme + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:tokenBytes])
}

// Genuine reports whether a reply carries the token of the attempt that it speaks of.
func Genuine(job makegood.Job, r makegood.Reply) bool {
	want := Token(job, r.Step, r.Attempt)
	return want != "" && hmac.Equal([]byte(want), []byte(r.Token))
}
