package main

import (
	"bytes"
	"regexp"
	"testing"
)

// The report that is right stands, and the other one is undone, told which it is; neither is in the job.
func TestOneReportStandsAndTheOtherIsShredded(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^good  Processed  \{"report":\{"\$payload":\{"by":"press","bytes":20971520,"sha256":"[0-9a-f]{64}","type":"text/plain"\}\},"pages":20\}$`,
		`(?m)^short  shredded sha256:[0-9a-f]{12}, 20971520 bytes, text/plain$`,
		`(?m)^short  Undone  `,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("got\n%s\nwant a line as %s", &out, want)
		}
	}
}
