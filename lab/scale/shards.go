package scale

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// recorder is DynamoDB as far as a birth needs it: it accepts every item, and keeps the last.
type recorder struct {
	item struct {
		PK    struct{ S string }
		Shard struct{ N string }
	}
}

// Do reads the item of a PutItem, and answers that it is stored.
func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	put := struct{ Item any }{&r.item}
	if err := json.Unmarshal(body, &put); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte("{}"))), Request: request}, nil
}

// placed is where the shipped store puts a job: the key of its partition in the table, and its shard in the index.
type placed struct {
	partition string
	shard     int
}

// placer asks the shipped store.
type placer struct {
	recorder recorder
	store    *dynamostore.Store
}

func newPlacer(shards int) (*placer, error) {
	p := &placer{}
	client := dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", HTTPClient: &p.recorder, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	var err error
	p.store, err = dynamostore.New(dynamostore.Config{Client: client, Table: "jobs", Index: "CompleteBy", Shards: shards})
	return p, err
}

// place stores a job that begins now, or later.
func (p *placer) place(ctx context.Context, id string, later bool) (placed, error) {
	born := time.Date(2026, time.November, 26, 10, 0, 0, 0, time.UTC)
	j := job.Job{ID: id, Workflow: "order", ProcessState: makegood.JobPending, CreatedAt: born, CompleteBy: born.Add(time.Minute)}
	if later {
		j.StartAt = j.CompleteBy
	}
	if err := p.store.Create(ctx, j); err != nil {
		return placed{}, err
	}
	shard, err := strconv.Atoi(p.recorder.item.Shard.N)
	return placed{p.recorder.item.PK.S, shard}, err
}

// fill is how many jobs a shard has: the mean, and the fullest one.
type fill struct {
	shards        int
	mean, fullest float64
}

// above is how much more the fullest shard has than the mean, 0.05 for a twentieth.
func (f fill) above() float64 { return f.fullest/f.mean - 1 }

// fillOf places so many jobs, and counts those of each shard, those of a partition of the table too.
func fillOf(ctx context.Context, shards, jobs int, later bool) (f fill, partitions int, err error) {
	p, err := newPlacer(shards)
	if err != nil {
		return f, 0, err
	}
	byShard, byPartition := map[int]int{}, map[string]int{}
	for n := range jobs {
		at, err := p.place(ctx, fmt.Sprintf("order-%06d", n), later)
		if err != nil {
			return f, 0, err
		}
		byShard[at.shard]++
		byPartition[at.partition]++
	}
	f.shards = len(byShard)
	f.mean = float64(jobs) / float64(f.shards)
	for _, n := range byShard {
		f.fullest = max(f.fullest, float64(n))
	}
	return f, len(byPartition), nil
}

// key is one in a shard of the index: written when its job is born, deleted when the job ends.
type key struct{ born, ends, completeBy time.Duration }

// upperHalf splits a shard of the index in the middle of its keys after ten minutes of births, as DynamoDB splits a
// partition that is hot, and returns which share of the writes of the next minute is in the upper half. Jobs last three
// seconds; completeBy is the key of the one born then.
func upperHalf(completeBy func(born time.Duration) time.Duration) float64 {
	const between, lasts, split, until = 10 * time.Millisecond, 3 * time.Second, 10 * time.Minute, 11 * time.Minute
	var keys []key
	for at := time.Duration(0); at < until; at += between {
		keys = append(keys, key{at, at + lasts, completeBy(at)})
	}
	there := slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.born > split || k.ends <= split })
	slices.SortFunc(there, func(a, b key) int { return cmp.Compare(a.completeBy, b.completeBy) })
	middle := there[len(there)/2].completeBy
	writes, upper := 0, 0
	for _, k := range keys {
		for _, at := range []time.Duration{k.born, k.ends} {
			if at <= split || at > until {
				continue
			}
			writes++
			if k.completeBy >= middle {
				upper++
			}
		}
	}
	return float64(upper) / float64(writes)
}
