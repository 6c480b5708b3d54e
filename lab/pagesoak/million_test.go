//go:build unix

package pagesoak_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/lab/pagesoak"
)

const millionFolder = "../../.build/" + pagesoak.MillionFolder

// BenchmarkMillion asks for each view in a file of a million jobs, as often as go test -bench does, and reports the median and the
// 99th of a hundred. Nothing runs meanwhile.
func BenchmarkMillion(b *testing.B) {
	pagesoak.MakeMillion(b, millionFolder)
	eng := pagesoak.OpenMillion(b, millionFolder, nil)
	b.Cleanup(func() { check(b, eng.Close()) })
	for _, path := range []string{
		"/", "/?state=Processed", "/?state=Error", "/?state=Processing", "/?state=Undone", "/?workflow=order-7", "/?state=Processed&workflow=order-7", "/?q=tenant:tenant-75", "/?q=label:region%3Dr-3",
		"/?q=nobody-has-this-id", "/?late=true", "/?since=1h", "/jobs/order-0500000", "/jobs/order-0000100", "/errors", "/agents", "/workflows", "/workflows/order-7", "/schedules",
	} {
		b.Run(path, func(b *testing.B) {
			ask(b, eng, path) // The first may find the counts being counted.
			var took []time.Duration
			used := processor(b)
			for b.Loop() {
				begun := time.Now()
				ask(b, eng, path)
				took = append(took, time.Since(begun))
			}
			// What the machine does beside it is in the times, and not in this.
			b.ReportMetric((processor(b)-used).Seconds()*1000/float64(b.N), "cpu-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// processor is how much of the processors this process has used, with what it counts beside the views.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ask asks for a page.
func ask(b *testing.B, eng *engine.Engine, path string) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	w := httptest.NewRecorder()
	eng.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: %d: %.2000s", path, w.Code, w.Body)
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
