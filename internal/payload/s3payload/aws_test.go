//go:build aws

package s3payload_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
	"github.com/makegood-dev/makegood/internal/payload/s3payload"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

const bytesMB = 1 << 20

// What a stand-in does otherwise than S3 is listed in internal/testkit/standin.
func TestConformance(t *testing.T) {
	b := newBucket(t)
	payloadtest.Run(t, b.harness)
}

func TestDoors(t *testing.T) {
	b := newBucket(t)
	payloadtest.RunDoors(t, b.harness)
}

// bucket is one that is emptied and deleted after the test, and counts what is asked of it.
type bucket struct {
	client *s3.Client
	name   string
	http   counting
}

// counting counts requests by what they ask for.
type counting struct {
	http.Client
	mu    sync.Mutex
	asked map[string]int
}

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	what := r.Method
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		what = "COPY"
	}
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[what]++
	c.mu.Unlock()
	return c.Client.Do(r)
}

func (c *counting) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[what]
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{name: "payloads-" + strings.ToLower(rand.Text())}
	config := standin.S3(t).Config(t)
	// A body of 100 MB is to be read bit by bit.
	config.HTTPClient = &b.http
	b.client = s3.NewFromConfig(config)
	in := &s3.CreateBucketInput{Bucket: &b.name, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: standin.Region}}
	if _, err := b.client.CreateBucket(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, key := range b.keys(t, "") {
			if _, err := b.client.DeleteObject(context.WithoutCancel(t.Context()), &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.client.DeleteBucket(context.WithoutCancel(t.Context()), &s3.DeleteBucketInput{Bucket: &b.name}); err != nil {
			t.Error(err)
		}
	})
	return b
}

// keys are those that begin with a prefix.
func (b *bucket) keys(t *testing.T, prefix string) (keys []string) {
	out, err := b.client.ListObjectsV2(context.WithoutCancel(t.Context()), &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func (b *bucket) store(c s3payload.Config) *s3payload.Store {
	c.Client, c.Bucket, c.Prefix = b.client, b.name, "test"
	return s3payload.New(c)
}

func (b *bucket) harness(t *testing.T) payloadtest.Harness {
	s := b.store(s3payload.Config{Days: 60, Renew: 7 * 24 * time.Hour})
	change := func(with func([]byte) []byte) func(string, makegood.Payload) {
		return func(job string, p makegood.Payload) { b.change(t, keyOf(job, p), with) }
	}
	return payloadtest.Harness{
		Store: s, Doors: s,
		Damage:   change(func(body []byte) []byte { body[len(body)/2] ^= 1; return body }),
		Truncate: change(func(body []byte) []byte { return body[:len(body)-1] }),
		// A part, and what the SDK has of it in flight and does not give back at once.
		Heap: 40 * bytesMB,
	}
}

func keyOf(job string, p makegood.Payload) string {
	if p.By == "" {
		return "test/submitter/" + job + "/" + p.SHA256
	}
	return "test/agent/" + p.By + "/" + job + "/" + p.SHA256
}

// change puts something else in place of an object, as somebody does who may write to the bucket.
func (b *bucket) change(t *testing.T, key string, with func([]byte) []byte) {
	t.Helper()
	out, err := b.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(with(body))}); err != nil {
		t.Fatal(err)
	}
}

// A payload is copied onto itself when it is old, and not each time; what the lifecycle may take any moment is not there.
func TestKeepMakesYoungWhatIsOld(t *testing.T) {
	const day = 24 * time.Hour
	b := newBucket(t)
	later := time.Duration(0)
	s := b.store(s3payload.Config{Days: 60, Renew: 7 * day, Now: func() time.Time { return time.Now().Add(later) }})
	forever := b.store(s3payload.Config{Renew: 7 * day, Now: func() time.Time { return time.Now().Add(later) }})
	value := bytes.Repeat([]byte("x"), s3payload.PartBytes+1)
	for _, size := range []int{10, len(value)} {
		at := payload.Place{Job: "kept", By: "press"}
		w, err := s.Write(t.Context(), at, bytes.NewReader(value[:size]))
		if err != nil {
			t.Fatal(err)
		}
		p := makegood.Payload{SHA256: w.SHA256, Bytes: w.Bytes, By: at.By}
		for _, c := range []struct {
			store  *s3payload.Store
			age    time.Duration
			copies int
			want   error
		}{
			{s, 6 * day, 0, nil},
			{s, 8 * day, 1, nil},
			{s, 58 * day, 1, nil},
			{s, 60 * day, 0, payload.ErrNotFound},
			{forever, 4000 * day, 0, nil},
		} {
			later = c.age
			before := b.http.count("COPY")
			if err := c.store.Keep(t.Context(), "kept", p); !errors.Is(err, c.want) {
				t.Errorf("%d bytes after %v: got %v, want %v", size, c.age, err, c.want)
			}
			if got := b.http.count("COPY") - before; got != c.copies {
				t.Errorf("%d bytes after %v: %d copies, want %d", size, c.age, got, c.copies)
			}
		}
		later = 60 * day
		if d, err := s.WriteDoor(t.Context(), at, w); err != nil || d.Method != http.MethodPut {
			t.Errorf("a door to what goes any moment: got %q, %v, want PUT", d.Method, err)
		}
		later = 0
		r, err := s.Open(t.Context(), "kept", p, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, value[:size]) {
			t.Errorf("after the copies: got %d bytes, %v, want %d", len(got), err, size)
		}
		r.Close()
	}
}

// Whatever ends a write, nothing of it stays under incoming, neither as an object nor as parts.
func TestNothingStaysThatWasBegun(t *testing.T) {
	b := newBucket(t)
	s := b.store(s3payload.Config{})
	endless := io.LimitReader(zeros{}, makegood.MaxLargePayloadBytes+1)
	if _, err := s.Write(t.Context(), payload.Place{Job: "j"}, endless); !errors.Is(err, payload.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, payload.ErrTooLarge)
	}
	broken := errors.New("the line broke")
	cut := io.MultiReader(io.LimitReader(zeros{}, 2*s3payload.PartBytes+5), iotest.ErrReader(broken))
	if _, err := s.Write(t.Context(), payload.Place{Job: "j", By: "press"}, cut); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := io.MultiReader(io.LimitReader(zeros{}, s3payload.PartBytes+5), readFunc(func() { cancel() }))
	if _, err := s.Write(ctx, payload.Place{Job: "j"}, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if keys := b.keys(t, ""); len(keys) > 0 {
		t.Errorf("there is %q, want nothing", keys)
	}
	// Two parts exactly, and a long one: only what was meant is there.
	for _, n := range []int64{2 * s3payload.PartBytes, 2*s3payload.PartBytes + 1} {
		if _, err := s.Write(t.Context(), payload.Place{Job: "j"}, io.LimitReader(zeros{}, n)); err != nil {
			t.Fatal(err)
		}
	}
	if keys := b.keys(t, ""); len(keys) != 2 || len(b.keys(t, "test/submitter/j/")) != 2 {
		t.Errorf("there is %q, want the two that were written", keys)
	}
	out, err := b.client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &b.name})
	if err != nil || len(out.Uploads) > 0 {
		t.Errorf("got %d uploads under way, %v, want none", len(out.Uploads), err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// readFunc is a reader that has nothing, and does something when it is asked.
type readFunc func()

func (f readFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
