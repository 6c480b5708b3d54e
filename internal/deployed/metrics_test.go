package deployed

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/workflows"
)

// What has happened is written once, and nothing when nothing has.
func TestALineHoldsWhatTotalsHaveGrownBy(t *testing.T) {
	var out bytes.Buffer
	var one, two atomic.Int64
	m := newMeter(&out, slog.New(slog.DiscardHandler), "prod")
	m.now = func() time.Time { return time.UnixMilli(1_800_000_000_000) }
	m.agent = "http"
	m.count(func() []total { return []total{{"One", one.Load()}, {"Two", two.Load()}} })
	m.write(t.Context())
	one.Add(3)
	m.write(t.Context())
	m.write(t.Context())
	one.Add(1)
	two.Add(2)
	m.write(t.Context())
	const head = `"Stack":"prod",`
	const tail = `"_aws":{"Timestamp":1800000000000,"CloudWatchMetrics":[{"Namespace":"Makegood","Dimensions":[["Stack"],["Stack","Agent"]],"Metrics":[`
	want := `{"Agent":"http","One":3,` + head + tail + `{"Name":"One","Unit":"Count"}]}]}}` + "\n" +
		`{"Agent":"http","One":1,` + head + `"Two":2,` + tail + `{"Name":"One","Unit":"Count"},{"Name":"Two","Unit":"Count"}]}]}}` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A counter that is added to the Scheduler or to agents, and to no metric, would never be seen.
func TestEveryCounterIsInAMetric(t *testing.T) {
	every(t, schedulerTotals)
	every(t, agentTotals)
	every(t, supervisorTotals)
	every(t, timetableTotals)
}

// every checks that each field of some Stats is in a metric.
func every[Stats any](t *testing.T, totals func(Stats) []total) {
	t.Helper()
	var none Stats
	fields := reflect.TypeFor[Stats]()
	for i := range fields.NumField() {
		one := none
		reflect.ValueOf(&one).Elem().Field(i).SetInt(1)
		if slices.Equal(totals(none), totals(one)) {
			t.Errorf("%s: %s is in no metric", fields, fields.Field(i).Name)
		}
	}
	for _, metric := range totals(none) {
		if !slices.Contains(Metrics(), metric.name) {
			t.Errorf("%s is not among Metrics", metric.name)
		}
	}
}

// told hears, or does not.
type told struct{ err error }

func (n told) Announce(context.Context, notify.Notice) error    { return n.err }
func (n told) AgentAlert(context.Context, string, string) error { return n.err }

// An alert that did not arrive is made again, and counts then.
func TestAnAlertCountsWhenItWasHeard(t *testing.T) {
	for err, want := range map[error]int64{nil: 2, errors.New("deaf"): 0} {
		a := &alerts{Notifier: told{err}}
		for _, state := range domain.ProcessStates() {
			_ = a.Announce(t.Context(), notify.Notice{Announcement: job.Announcement{ProcessState: state}})
		}
		_ = a.AgentAlert(t.Context(), "http", "")
		if got := a.told.Load(); got != want {
			t.Errorf("with %v: got %d alerts, want %d: one for Error and one for the agent", err, got, want)
		}
	}
}

// known is what a stack knows of definitions.
type known struct {
	current map[string]string
	err     error
}

func (k *known) PutDefinition(_ context.Context, name, hash string, _ []byte) error {
	k.current[name] = hash
	return k.err
}

func (k *known) Definition(context.Context, string) ([]byte, error) { return nil, store.ErrNotFound }

func (k *known) Adopt(context.Context, string, []makegood.Schedule) error { return nil }

func (k *known) MayAdopt(context.Context, string, []makegood.Schedule) error { return nil }

func (k *known) CurrentDefinition(_ context.Context, name string) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if hash, ok := k.current[name]; ok {
		return hash, nil
	}
	return "", store.ErrNotFound
}

// Which definition is current must not rest on which process was started last.
func TestAKnownDefinitionIsNotReplacedAndAFailureIsTriedAgain(t *testing.T) {
	d, err := newDefinitions(workflows.Files)
	if err != nil {
		t.Fatal(err)
	}
	stack := &known{current: map[string]string{}, err: errors.New("throttled")}
	if err := d.publishAll(t.Context(), stack, stack); err == nil || len(stack.current) != 0 {
		t.Errorf("throttled: got %v and %v, want an error and nothing known", err, stack.current)
	}
	stack.err = nil
	if err := d.publishAll(t.Context(), stack, stack); err != nil || len(stack.current["order"]) == 0 {
		t.Errorf("got %v and %v, want order known", err, stack.current)
	}
	stack.current["order"] = "newer"
	again, err := newDefinitions(workflows.Files)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.publishAll(t.Context(), stack, stack); err != nil || stack.current["order"] != "newer" {
		t.Errorf("another process: got %v and %v, want the newer one kept", err, stack.current)
	}
	if _, err := newDefinitions(fstest.MapFS{"bad.yaml": {Data: []byte("name: Bad")}}); err == nil || !strings.Contains(err.Error(), "bad.yaml") {
		t.Errorf("a bad file: got %v, want it named", err)
	}
}
