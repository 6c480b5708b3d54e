package wire

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// What is written quickly is what encoding/json writes, to the byte, whatever the fields hold. Fields are filled by
// reflection, so one that is new and not written quickly fails here.
func TestWhatIsWrittenQuicklyIsWhatJSONWrites(t *testing.T) {
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	quickTasks, quickEvents := 0, 0
	for range 20_000 {
		var m task
		fill(random, reflect.ValueOf(&m).Elem())
		quickTasks += compare(t, seed, m, m.quickly)
		var e event
		fill(random, reflect.ValueOf(&e).Elem())
		if random.IntN(2) == 0 { // as in a success
			e.Error, e.Key, e.Deadline, e.Completion, e.Request = nil, time.Time{}, time.Time{}, "", ""
		}
		quickEvents += compare(t, seed, e, e.quickly)
	}
	if quickTasks < 1000 || quickEvents < 1000 {
		t.Errorf("seed %d: %d tasks and %d events were written quickly, want at least 1000 of each", seed, quickTasks, quickEvents)
	}
}

// compare returns 1 for a message that was written quickly.
func compare(t *testing.T, seed uint64, m any, quickly func() (string, bool)) int {
	t.Helper()
	got, ok := quickly()
	if !ok {
		return 0
	}
	if want, err := encode(m); err != nil || got != want {
		t.Fatalf("seed %d: %T was written quickly as\n%s\nwant\n%s\n%v", seed, m, got, want, err)
	}
	return 1
}

// fill gives each field a value: nearly always one of those that are written quickly.
func fill(random *rand.Rand, v reflect.Value) {
	var known any
	if v.CanInterface() { // The head's fields can be set, and it cannot.
		known = v.Addr().Interface()
	}
	switch m := known.(type) {
	case *time.Time:
		*m = pick(random, time.Time{}, time.Now().UTC(), time.Now(), time.UnixMilli(random.Int64N(1<<42)).UTC(),
			time.Date(2026, 11, 26, 12, 0, 0, 0, time.FixedZone("", 5*3600+1800)), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))
		return
	case *json.RawMessage:
		*m = pick(random, nil, json.RawMessage(`{"a":1}`), json.RawMessage(` { "b<>&" : [ 1 , "\u0041é\u2028" ] }`), json.RawMessage("\"\uFFFE \uFFFF \u2028\""),
			json.RawMessage(`null`), json.RawMessage(`0`), json.RawMessage{}, json.RawMessage(`{`), json.RawMessage("\"\xff\""))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i))
		}
	case reflect.Pointer, reflect.Slice:
		// A rare field, set seldom enough for the others to be compared.
		if random.IntN(8) > 0 {
			return
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(random, v.Index(0))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.String:
		v.SetString(pick(random, "", "a", "step-1", "eu/1:#~", "a<b>&c", "é", "\"", `\`, "\n", "\x7f", "\u2028", "\xc3", "\xff"))
	case reflect.Int, reflect.Int64:
		v.SetInt(pick(random, 0, 1, -1, random.Int64()))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	default:
		panic("no values for " + v.Type().String())
	}
}

// pick returns the zero value, or one of the first, or seldom any.
func pick[T any](random *rand.Rand, all ...T) T {
	if random.IntN(20) > 0 {
		all = all[:min(len(all), 4)]
	}
	return all[random.IntN(len(all))]
}

// A value in a message of its own is as encoding/json writes it, also where a message with it and others would be rare.
func TestEachValueIsWrittenAsJSONWritesIt(t *testing.T) {
	fields := reflect.TypeFor[event]().NumField()
	for seed := range uint64(50 * 20) {
		random := rand.New(rand.NewPCG(seed, 1))
		e := event{head: head{V: Version, Type: typeStepSucceeded}}
		fill(random, reflect.ValueOf(&e).Elem().Field(1+random.IntN(fields-1)))
		compare(t, seed, e, e.quickly)
	}
}

// Messages of the largest size do not stay in the pool, and one that has failed leaves no trace in the next.
func TestAFailedMessageLeavesNoTrace(t *testing.T) {
	for _, output := range []json.RawMessage{json.RawMessage(`{"a":`), json.RawMessage(`1`), slices.Repeat(json.RawMessage(`1`), 2*maxRememberedBytes), json.RawMessage(`2`)} {
		e := event{head: head{V: Version, Type: typeStepSucceeded}, Job: "j", Output: output}
		if ok := compare(t, 0, e, e.quickly) == 1; ok != json.Valid(output) {
			t.Errorf("output of %d bytes: written quickly: %v, want %v", len(output), ok, json.Valid(output))
		}
	}
}
