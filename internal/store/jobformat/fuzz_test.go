package jobformat_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// maxGrowth is how many bytes of memory a byte of a stored job may cost: a string of no length among the requests, the
// announcements or the steps.
const maxGrowth = 1000

// decodeAll reads bytes as everything that they may be.
func decodeAll(data []byte) {
	jobformat.CreatedAt(data)
	jobformat.Needs(data)
	_, _ = jobformat.DecodeNames(data)
	_, _, _ = jobformat.DecodeDetails(data)
	_, _ = jobformat.DecodeWhole(data)
}

// Whatever the bytes are: no panic, and what is read as a job is written and read again as the same.
func FuzzDecode(f *testing.F) {
	for _, job := range corpusJobs() {
		f.Add(jobformat.Encode(job, jobformat.Apart{}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decodeAll(data)
		job, err := jobformat.DecodeWhole(data)
		if err != nil {
			return
		}
		if len(job.Steps) > limits.MaxSteps {
			t.Fatalf("got %d steps from %d bytes", len(job.Steps), len(data))
		}
		again, err := jobformat.DecodeWhole(jobformat.Encode(job, jobformat.Apart{}))
		must(t, "decode again", err)
		if !reflect.DeepEqual(again, job) {
			t.Errorf("a job came back as another:\n got %+v\nwant %+v", again, job)
		}
	})
}

// Bytes that were cut, or changed, are read or refused.
func TestDamagedBytesAreRefused(t *testing.T) {
	good := jobformat.Encode(full(), jobformat.Apart{})
	for n := range good {
		decodeAll(good[:n])
	}
	seed := seed.Of(t)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		bad := append([]byte(nil), good...)
		for range 1 + dice.IntN(4) {
			bad[2+dice.IntN(len(bad)-2)] = byte(dice.Uint32())
		}
		decodeAll(bad)
	}
}

// A number that is kept in a byte, and is larger, is damaged: it does not become another.
func TestANumberAboveAByteIsDamaged(t *testing.T) {
	j := full()
	j.Steps[0].Forward.Deferred = 200
	deferred := func(n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, 74, protowire.VarintType), n)
	}
	good, bad := deferred(200), deferred(456)
	data := jobformat.Encode(j, jobformat.Apart{})
	if bytes.Count(data, good) != 1 {
		t.Fatalf("%d places have % x, want one", bytes.Count(data, good), good)
	}
	if _, err := jobformat.DecodeWhole(bytes.Replace(data, good, bad, 1)); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("got %v, want that it is damaged", err)
	}
}

// A length in the bytes allocates no more than the bytes justify.
func TestBytesMakeNoMoreThanTheyJustify(t *testing.T) {
	const size = 64 << 10
	for name, unit := range map[string][]byte{
		"requests": {0xda, 0x01, 0}, "announcements": {0x82, 0x02, 0}, "names": {0x5a, 0}, "activities": {0x6a, 0},
		"steps": {0xb2, 0x02, 0}, "details": {0x92, 0x01, 0}, "unknown": {0xf8, 0x7f, 0}, "a long name": {0x5a, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		data := []byte{8, 1}
		for len(data) < size {
			data = append(data, unit...)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decodeAll(data)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > maxGrowth*size {
			t.Errorf("%s: %d bytes were allocated for %d", name, grown, size)
		}
	}
}

func readCorpus(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must(t, pattern, err)
	if len(files) == 0 {
		t.Fatalf("%s: nothing is there", pattern)
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, file, err)
	return data
}
