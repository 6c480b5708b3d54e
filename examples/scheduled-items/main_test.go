package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Every item is done once, and no more than a tenth of a second after its time.
func TestEveryItemIsDoneOnceAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), &out, "", 200, time.Hour); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if !strings.HasSuffix(text, "200 items, each once\n") {
			t.Errorf("got\n%s", text)
		}
		for line := range strings.Lines(text) {
			if late := strings.Fields(line); len(late) == 5 && len(late[1]) > 2 {
				t.Errorf("got %q, want it within 99 milliseconds", line)
			}
		}
	})
}
