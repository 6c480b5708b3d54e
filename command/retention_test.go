package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/embedded"
)

func TestARetentionIsDaysOrADuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1d": day, "36h": 36 * time.Hour, "3660d": maxRetention, "0": 0, "0d": 0, "0s": 0,
	} {
		var got retention
		if err := got.Set(text); err != nil || time.Duration(got) != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
		var again retention
		if err := again.Set(got.String()); err != nil || again != got {
			t.Errorf("%s: its text %s is read as %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "23h", "1", "1s", "3661d", "99999999d", "for ever"} {
		got := retention(embedded.MinRetention)
		if err := got.Set(text); err == nil || time.Duration(got) != embedded.MinRetention {
			t.Errorf("%q: got %v, %v, want an error", text, got, err)
		}
	}
}

// dev forgets after a month and run never, unless they are told otherwise; both say so.
func TestDevForgetsAndRunDoesNot(t *testing.T) {
	for document, phrase := range map[string]string{"docs/command-line.md": "deletes jobs %d days after", "docs/architecture.md": "%d days for `dev`, none for `run`"} {
		text, err := os.ReadFile("../" + document)
		if want := fmt.Sprintf(phrase, time.Duration(devRetention)/day); err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not say %q (%v)", document, want, err)
		}
	}
	for _, c := range []struct {
		verb, byDefault string
	}{{"dev", "30d"}, {"run", "0"}} {
		verb, _, err := newRoot("makegood", nil, nil).Find([]string{c.verb})
		if err != nil {
			t.Fatal(err)
		}
		flag := verb.Flags().Lookup("retention")
		if flag == nil || flag.DefValue != c.byDefault || !strings.Contains(flag.Usage, retention(embedded.MinRetention).String()) {
			t.Errorf("%s: got the flag %+v, want the default %s, and the least", c.verb, flag, c.byDefault)
		}
	}
}
