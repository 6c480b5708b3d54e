package trips

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/examples/travel/agency"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// inProcess is the services without a network: the host of a request says which is meant.
func inProcess(a *agency.Agency) (Urls, *http.Client) {
	handlers := map[string]http.Handler{}
	for _, service := range agency.Services {
		handlers[service] = a.Handler(service)
	}
	all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handlers[r.Host].ServeHTTP(w, r) })
	return Urls{"http://flights", "http://hotels", "http://cars", "http://payments"}, makegoodtest.Client(all)
}

func yaml(t *testing.T, name string) []byte {
	t.Helper()
	text, err := Files.ReadFile("workflows/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trip is a job of one trip.
func trip(t *testing.T, car string) makegoodtest.Case {
	t.Helper()
	return makegoodtest.Case{
		YAML:  yaml(t, "trip.yaml"),
		Input: Trip{Customer: "Ada", Flight: "LH 400", Hotel: "Ritz", Car: car, Cents: 99900},
		Services: func() makegoodtest.Services {
			a := agency.New()
			return makegoodtest.Services{Agents: Agents(inProcess(a)), Check: func(job makegoodtest.Job) error {
				ends := map[string]makegood.ProcessState{makegoodtest.JobID: job.ProcessState}
				if wrong := agency.Check(a.Ledger(), ends); len(wrong) > 0 {
					return errors.New(strings.Join(wrong, "\n"))
				}
				return nil
			}}
		},
	}
}

func TestATripIsBookedWholeOrNotAtAll(t *testing.T) {
	for car, want := range map[string]makegood.ProcessState{"Mini": makegood.JobProcessed, agency.SoldOut: makegood.JobUndone} {
		if job := makegoodtest.Run(t, trip(t, car)); job.ProcessState != want {
			t.Errorf("car %s: got %s (%s), want %s", car, job.ProcessState, job.Reason, want)
		}
	}
}

func TestATripIsGoodWhereverTheEngineDies(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes two hundred runs")
	}
	t.Run("booked", func(t *testing.T) { makegoodtest.CrashEverywhere(t, trip(t, "Mini")) })
	t.Run("undone", func(t *testing.T) { makegoodtest.CrashEverywhere(t, trip(t, agency.SoldOut)) })
}
