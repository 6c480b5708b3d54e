package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/sample/services"
)

// BenchmarkRunAgain says when a run that was killed is at work again, from the start of the process to the first
// request of a step, for files of so many lines. Each is killed in its first moments, so its jobs have not ended.
func BenchmarkRunAgain(b *testing.B) {
	for _, lines := range []int{2_000, 20_000, 60_000} {
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			var back []time.Duration
			for b.Loop() {
				s := openShop(b, services.Options{Script: services.Script{Profile: services.FaultsNone}})
				s.orders(lines)
				s.workAndDie(150*time.Millisecond, lines)
				back = append(back, s.workAndDie(0, lines))
			}
			slices.Sort(back)
			b.ReportMetric(0, "ns/op") // It would count the work before the kill.
			b.ReportMetric(float64(back[len(back)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(back[len(back)-1].Milliseconds()), "max-ms")
		})
	}
}
