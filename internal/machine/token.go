package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/job"
)

// scheme is the number of the way in which tokens are made. It stands before each, followed by a dot, so that tokens
// of another way can be recognized.
const scheme = 1

// maxSchemeDigits is how many digits the number of a scheme can have.
const maxSchemeDigits = 4

// tokenBytes is how much of the HMAC a token has.
const tokenBytes = 16

// Token returns the token that a reply to an attempt must carry, so that only the receiver of its task can answer: an
// HMAC of step and attempt under the job's secret. Empty for a job that has no secret.
func Token(j job.Job, step string, attempt int) string {
	if len(j.Secret) == 0 {
		return ""
	}
	// A step's name has no such byte, so no two attempts are written the same.
	return strconv.Itoa(scheme) + "." + codeOf(j.Secret, step+"\x00"+strconv.Itoa(attempt))
}

// codeOf is the beginning of the HMAC-SHA256 of a text, written as text.
func codeOf(secret []byte, text string) string {
	mac := hmacOf(secret, text)
	return base64.RawURLEncoding.EncodeToString(mac[:tokenBytes])
}

// hmacOf is the HMAC-SHA256 (RFC 2104) of a text. Package crypto/hmac makes the same with five allocations more, and
// every step needs four HMACs. That package handles secrets longer than a block, which no job has.
func hmacOf(secret []byte, text string) [sha256.Size]byte {
	if len(secret) > sha256.BlockSize {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return [sha256.Size]byte(mac.Sum(nil))
	}
	var room [sha256.BlockSize + maxCodedText]byte
	inner := sha256.Sum256(append(pad(room[:0], secret, 0x36), text...))
	return sha256.Sum256(append(pad(room[:0], secret, 0x5c), inner[:]...))
}

// maxCodedText is the length that most authenticated texts do not exceed.
const maxCodedText = 192

// pad appends a block to an empty buffer: the secret, padded with zeros, each byte XORed with by.
func pad(buffer, secret []byte, by byte) []byte {
	for i := range sha256.BlockSize {
		b := by
		if i < len(secret) {
			b ^= secret[i]
		}
		buffer = append(buffer, b)
	}
	return buffer
}

// Genuine reports whether a reply carries the token of the attempt that it speaks of.
func Genuine(j job.Job, r job.Reply) bool {
	want := Token(j, r.Step, r.Attempt)
	return want != "" && hmac.Equal([]byte(want), []byte(r.Token))
}

// OfLaterScheme reports whether only a later release knows the scheme of a reply's token: this release cannot verify
// it, so the reply must neither count nor be dropped. Any other token that is not Genuine is forged.
func OfLaterScheme(r job.Reply) bool {
	number, rest, _ := strings.Cut(r.Token, ".")
	if rest == "" || len(number) > maxSchemeDigits {
		return false
	}
	of, err := strconv.Atoi(number)
	return err == nil && of > scheme && strconv.Itoa(of) == number
}
