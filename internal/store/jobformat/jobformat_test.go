package jobformat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// full is a job with a value of its own in every field, of those that are stored here.
func full() job.Job {
	var j job.Job
	n := 0
	set(reflect.ValueOf(&j).Elem(), &n)
	j.Needs, j.Desired = jobformat.Level, makegood.JobUndone
	for i := range j.Untold {
		j.Untold[i].ProcessState = makegood.JobError
	}
	for i := range j.Steps {
		j.Steps[i].Forward.Former, j.Steps[i].Undo.Former = uint8(len(j.Former)), 1 // Others are not there.
	}
	for i := range j.Changes.Pending {
		j.Changes.Pending[i].From, j.Changes.Pending[i].To = job.ChangeState(job.Dispatched), job.ChangeState(job.Done)
	}
	return stored(j)
}

// stored is a job but for what stands beside it.
func stored(j job.Job) job.Job {
	j.ID, j.Workflow, j.ProcessState, j.FailureCount, j.LockedBy = "", "", "", 0, ""
	j.CompleteBy, j.Rev = time.Time{}, 0
	return j
}

// set gives every field of v a value of its own.
func set(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + int64(*n)).UTC()))
		return
	case json.RawMessage, []byte:
		v.SetBytes(fmt.Appendf(nil, "%d", *n))
		return
	case job.Progress:
		return // No job keeps it.
	case job.ActivityState:
		v.SetString(string(job.Done))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text-", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%200 + 1))
	case reflect.Float64:
		v.SetFloat(1 / float64(*n+1))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type() == reflect.TypeFor[job.Claim]() && (name == "Beside" || name == "Bytes") {
				continue // No job keeps them.
			}
			if set(v.Field(i), n); v.Type().Field(i).Name == "Kept" {
				v.Field(i).SetString(unknown(500+*n%500, "kept"))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		set(v.Index(0), n)
		set(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint("a-", *n): "first", "b": "second"}))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), n)
	default:
		panic(fmt.Sprintf("a field of kind %s", v.Kind()))
	}
}

// unknown returns a field that this release does not know.
func unknown(number int, text string) string {
	b := protowire.AppendTag(nil, protowire.Number(number), protowire.BytesType)
	return string(protowire.AppendString(b, text))
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// apart takes names and details of a job's activities out of its data, and puts them in again.
func apart(t testing.TB, j job.Job) job.Job {
	t.Helper()
	details, held := jobformat.NewDetails(j, nil), map[jobformat.Place]bool{}
	for i, s := range j.Steps {
		for _, p := range []jobformat.Place{{Step: i}, {Step: i, Undo: true}} {
			details.Add(s.Name, p, p.At(j.Steps))
			held[p] = true
		}
	}
	data := jobformat.Encode(j, jobformat.Apart{Names: []byte("names"), Details: [][]byte{[]byte("details")}, Held: held})
	if _, err := jobformat.DecodeWhole(data); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a job without its parts is read whole: %v", err)
	}
	s, err := jobformat.Decode(data)
	must(t, "decode", err)
	same(t, "the hashes", fmt.Sprintf("%s %s", s.NamesAt, s.DetailsAt), "names [details]")
	names, err := jobformat.DecodeNames(jobformat.EncodeNames(j.Steps))
	must(t, "names", err)
	must(t, "name", s.Name(names))
	parts, _, err := jobformat.DecodeDetails(details.Encode())
	must(t, "details", err)
	for _, p := range s.Detailed {
		jobformat.Complete(p.At(s.Job.Steps), parts[p])
	}
	return s.Job
}

// A field that is added to a job and forgotten here would be lost at the first save.
func TestEveryFieldOfAJobIsStored(t *testing.T) {
	want := full()
	got, err := jobformat.DecodeWhole(jobformat.Encode(want, jobformat.Apart{}))
	must(t, "decode", err)
	same(t, "whole", got, want)
	same(t, "in parts", apart(t, want), want)
	must(t, "this release decides about it", jobformat.Newer(got))
	same(t, "needs", jobformat.Needs(jobformat.Encode(want, jobformat.Apart{})), want.Needs)
	same(t, "created", jobformat.CreatedAt(jobformat.Encode(want, jobformat.Apart{})), want.CreatedAt)
}

// The cache of a store gives one job to several callers at once, and each caller may encode that job. The race detector
// reports any write to it, and after the encoding the job is unchanged.
func TestEncodingLeavesTheJobAlone(t *testing.T) {
	j := full()
	var encoding sync.WaitGroup
	for range 2 {
		encoding.Go(func() { jobformat.Encode(j, jobformat.Apart{}) })
	}
	encoding.Wait()
	same(t, "a job that was encoded", j, full())
}

// What is unknown of an activity's details goes where they go; what is not, stays where every decision reads it.
func TestWhatIsKeptOfAnActivityLiesWhereItBelongs(t *testing.T) {
	detail, hot := unknown(63, "a detail"), unknown(400, "what decides")
	j := job.Job{Steps: []job.StepState{{Name: "ship", Forward: job.Activity{State: job.Done, Attempt: 1, Tries: 1, Kept: detail + hot}, Attempt: 1}}}
	same(t, "in parts", apart(t, j), j)
	data := string(jobformat.Encode(j, jobformat.Apart{Held: map[jobformat.Place]bool{{Step: 0}: true}}))
	if strings.Contains(data, detail) || !strings.Contains(data, hot) {
		t.Errorf("got %q, want it with %q and without %q", data, hot, detail)
	}
}

// Attempts, tries and failures, references and summaries of every kind of activity.
func TestAnActivityIsReadAsItWasWritten(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for _, a := range []job.Activity{
		{Attempt: 1},
		{Tries: 2},
		{State: job.Done},
		{State: job.Done, Attempt: 1, Tries: 1},
		{Unknown: true},
		{State: job.Backoff, Attempt: 3, Tries: 3, At: at, Resent: 1, Interruptions: 2, FailureCount: 3},
		{StartedAt: at},
		{At: at, OpenedAt: at, LookAt: at.Add(-time.Hour)},
		{Error: &job.StepError{}},
		{State: job.Done, Attempt: 2, Tries: 2, Output: job.Payload{Ref: "output#s#2#0a0b", Bytes: 1 << 18}},
		{State: job.Done, Attempt: 2, Tries: 2, Output: job.Payload{Ref: "output#s#2#", Bytes: 7}},
		{State: job.Done, Attempt: 2, Tries: 2, Output: job.Payload{Ref: "output#s#1#0a0b", Bytes: 7}},
		{State: job.Done, Attempt: 2, Tries: 2, Output: job.Payload{Inline: []byte("{}"), Ref: "output#s#2#0A", Bytes: 3}},
	} {
		for _, s := range []job.StepState{{Forward: a}, {Undo: a}, {Forward: a, Undo: a}, {Forward: a, Attempt: 9}} {
			s.Name = "s"
			s.Attempt = max(s.Attempt, a.Attempt)
			j := job.Job{CreatedAt: at.Add(-time.Second), Steps: []job.StepState{{Name: "first"}, s}}
			got, err := jobformat.DecodeWhole(jobformat.Encode(j, jobformat.Apart{}))
			must(t, "decode", err)
			same(t, "whole", got, j)
			same(t, "in parts", apart(t, j), j)
		}
	}
}

// What decides and is not known makes a job one of a later release, not a damaged one.
func TestAJobOfALaterReleaseIsLeft(t *testing.T) {
	for name, change := range map[string]func(j *job.Job){
		"needs":          func(j *job.Job) { j.Needs = jobformat.Level + 1 },
		"desired":        func(j *job.Job) { j.Desired = "newer-8" },
		"activity state": func(j *job.Job) { j.Steps[1].Undo.State = "newer-15" },
		"announcement":   func(j *job.Job) { j.Untold[0].ProcessState = "newer-8" },
	} {
		j := full()
		change(&j)
		got, err := jobformat.DecodeWhole(jobformat.Encode(j, jobformat.Apart{}))
		must(t, name, err)
		same(t, name, got, j)
		if err := jobformat.Newer(got); !errors.Is(err, store.ErrNewer) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrNewer)
		}
	}
	if err := jobformat.Newer(job.Job{ProcessState: "Dreaming"}); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a state beside the data: got %v, want %v", err, store.ErrNewer)
	}
}

// A layout that this release cannot read at all, or not to its end.
func TestALayoutOfALaterReleaseIsLeft(t *testing.T) {
	summary := func(varint ...byte) []byte { return append([]byte{8, 1, 12<<3 | 2, byte(len(varint))}, varint...) }
	many := protowire.AppendBytes([]byte{8, 1, 40, 3, 12<<3 | 2}, make([]byte, limits.MaxSteps+1))
	for name, data := range map[string][]byte{
		"a format": {8, 2, 0xff}, "a bit of a summary": summary(0x80, 0x40),
		"chains, said by the second step": summary(0, 0x80, 0x20), "chains, said by an undo": summary(0x40, 0x80, 0x20),
		"an undo of an undo": summary(0x40, 0x40), "a step too many": many,
	} {
		if _, err := jobformat.Decode(data); !errors.Is(err, store.ErrNewer) || errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrNewer)
		}
	}
	if s, _ := jobformat.Decode(many); s.Job.Desired != makegood.JobProcessed {
		t.Errorf("got a job that is to be %q, want what could be read", s.Job.Desired)
	}
}

// A release of before, which knows twelve bits of a summary, leaves a job with chains, and the data says so in one
// byte. A detail names those before it.
func TestChainsAreSaidInABitThatReleasesOfBeforeDoNotKnow(t *testing.T) {
	j := corpusJobs()["done"]
	apart := jobformat.Apart{Details: [][]byte{[]byte("last")}, Held: map[jobformat.Place]bool{{Step: 0}: true, {Step: 1}: true}}
	without := jobformat.Encode(j, apart)
	apart.Chained = true
	with := jobformat.Encode(j, apart)
	same(t, "bytes more", len(with)-len(without), 1)
	said := speaks(t, "Job", with)
	summaries := said.Get(said.Descriptor().Fields().ByName("summaries")).List()
	if first, second := summaries.Get(0).Uint(), summaries.Get(1).Uint(); first>>12 != 1 || second>>12 != 0 {
		t.Errorf("got the summaries %#x and %#x, want bit 12 in the first alone", first, second)
	}
	got, err := jobformat.Decode(with)
	must(t, "decode", err)
	want, err := jobformat.Decode(without)
	must(t, "decode without", err)
	same(t, "decoded", got, want)
	before := [][]byte{[]byte("first"), []byte("second")}
	details := jobformat.NewDetails(j, before)
	details.Add(j.Steps[0].Name, jobformat.Place{}, &j.Steps[0].Forward)
	held, named, err := jobformat.DecodeDetails(details.Encode())
	must(t, "details", err)
	if !reflect.DeepEqual(named, before) || len(held) != 1 {
		t.Errorf("got %d activities behind %q, want 1 behind %q", len(held), named, before)
	}
}

// Stores of before begin with a number of their own, or with a brace.
func TestWhatWasStoredBeforeThisFormatIsRefused(t *testing.T) {
	for _, data := range [][]byte{nil, {}, {2, 0, 0}, {1}, []byte(`{"id":"a"}`)} {
		if _, err := jobformat.Decode(data); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "before it") {
			t.Errorf("%q: got %v, want %v that says why", data, err, store.ErrDamaged)
		}
	}
}

// Needs is compared, so a number that no int holds must not turn negative.
func TestWhatNeedsMoreThanAnIntIsNewer(t *testing.T) {
	data := protowire.AppendVarint(protowire.AppendTag(jobformat.Encode(full(), jobformat.Apart{}), 16, protowire.VarintType), 1<<63)
	j, err := jobformat.DecodeWhole(data)
	must(t, "decode", err)
	if err := jobformat.Newer(j); !errors.Is(err, store.ErrNewer) || jobformat.Needs(data) <= jobformat.Level {
		t.Errorf("got %v, it needs %d, want %v", err, jobformat.Needs(data), store.ErrNewer)
	}
}

// Whoever may put new jobs into the table could give one a time that JSON cannot write, and no list with it could
// be shown.
func TestATimeThatJSONCannotWriteIsDamaged(t *testing.T) {
	ages := time.UnixMilli(math.MaxInt64 / 4).UTC()
	for name, change := range map[string]func(j *job.Job){
		"created":   func(j *job.Job) { j.CreatedAt = ages },
		"deadline":  func(j *job.Job) { j.Deadline = ages },
		"told":      func(j *job.Job) { j.Untold[0].At = ages },
		"at":        func(j *job.Job) { j.Steps[1].Undo.At = ages },
		"opened at": func(j *job.Job) { j.Steps[1].Undo.OpenedAt = ages },
	} {
		j := full()
		change(&j)
		data := jobformat.Encode(j, jobformat.Apart{})
		if _, err := jobformat.DecodeWhole(data); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrDamaged)
		}
		if created := jobformat.CreatedAt(data); created.Year() > 9999 {
			t.Errorf("%s: a list says created %v", name, created)
		}
	}
}

// Protobuf lets a writer put the fields of a message in any order, also a time before the one that it is counted from.
func TestFieldsAreReadInAnyOrder(t *testing.T) {
	const front = 2
	want := full()
	data := jobformat.Encode(want, jobformat.Apart{})
	fields := fieldsOf(t, data)
	turned := append(fields[:front:front], backwards(fields[front:])...)
	for i, f := range turned {
		if num, _, tag := protowire.ConsumeTag(f); num == 13 {
			activity, _ := protowire.ConsumeBytes(f[tag:])
			turned[i] = protowire.AppendBytes(f[:tag:tag], bytes.Join(backwards(fieldsOf(t, activity)), nil))
		}
	}
	got, err := jobformat.DecodeWhole(bytes.Join(turned, nil))
	must(t, "decode", err)
	same(t, "from the last field to the first", got, want)
}

// fieldsOf returns the fields of a message.
func fieldsOf(t *testing.T, data []byte) (fields [][]byte) {
	t.Helper()
	for len(data) > 0 {
		_, _, n := protowire.ConsumeField(data)
		must(t, "a field", protowire.ParseError(min(n, 0)))
		fields, data = append(fields, data[:n]), data[n:]
	}
	return fields
}

// backwards returns fields from the highest number to the lowest; those of one number stay in their order.
func backwards(fields [][]byte) [][]byte {
	number := func(f []byte) int {
		num, _, _ := protowire.ConsumeTag(f)
		return int(num)
	}
	return slices.SortedStableFunc(slices.Values(fields), func(a, b []byte) int { return number(b) - number(a) })
}
