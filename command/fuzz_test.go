package command

import (
	"net/url"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/limits"
)

func FuzzReplies(f *testing.F) {
	f.Add("shop=http://localhost:9000/jobs", "http://localhost/alert")
	f.Fuzz(func(t *testing.T, flags, alert string) {
		all := strings.Split(flags, "\n")
		replies, err := parseReplies(all)
		if err != nil && !strings.HasPrefix(err.Error(), "--reply ") {
			t.Errorf("got %q, want what is wrong with which flag", err)
		}
		if err == nil && len(replies) != len(all) {
			t.Errorf("got %d names of %d flags", len(replies), len(all))
		}
		for name, address := range replies {
			if target, err := url.Parse(address); limits.ReplyName.Check(name) != nil || err != nil || target.Host == "" {
				t.Errorf("%q was registered for %q", name, address)
			}
		}
		// The URL may hold a secret, and is in no message.
		if err := checkAlert(alert); err != nil && err.Error() != "--alert: want a URL of http or https" {
			t.Errorf("got %v, want the same words whatever the URL", err)
		}
	})
}
