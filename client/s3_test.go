package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// Uploads has the fields of an S3 event that the submission needs: the bucket, the key and the sequencer of each object.
type Uploads struct {
	Records []struct {
		S3 struct {
			Bucket struct{ Name string }
			Object struct{ Key, Sequencer string }
		}
	}
}

// begin submits a job for each object. S3 may deliver an event twice: the same upload has the same id, and is the same job.
func begin(ctx context.Context, jobs api.Jobs, event Uploads) error {
	for _, r := range event.Records {
		key, err := url.QueryUnescape(r.S3.Object.Key) // as S3 writes it: a+b.csv for "a b.csv"
		if err != nil {
			return err
		}
		input, err := json.Marshal(map[string]string{"bucket": r.S3.Bucket.Name, "key": key})
		if err != nil {
			return err
		}
		upload := sha256.Sum256([]byte(r.S3.Bucket.Name + "/" + r.S3.Object.Key + "/" + r.S3.Object.Sequencer))
		if _, err = jobs.Submit(ctx, makegood.Submission{Workflow: "import", ID: fmt.Sprintf("s3-%x", upload[:8]), Input: input}); err != nil {
			return err
		}
	}
	return nil
}

// A job for each object that is uploaded to S3 (docs/start-from-s3.md). jobs may be an engine, as here, its HTTP API, or a stack.
func Example_uploads() {
	type object struct{ Bucket, Key string }
	files := agent.New("files", agent.Do("read", func(_ context.Context, o object) (string, error) { return "read " + o.Key + " of " + o.Bucket, nil }))
	jobs, err := engine.Open(context.Background(), engine.Options{
		Workflows: fstest.MapFS{"import.yaml": {Data: []byte("name: import\nsteps: [{name: read, agent: files}]")}},
		Agents:    []agent.Handler{files},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = jobs.Run(context.Background()) }()
	defer func() { _ = jobs.Close() }()

	var event Uploads
	err = json.Unmarshal([]byte(`{"Records":[{"s3":{"bucket":{"name":"inbox"},"object":{"key":"a+b.csv","sequencer":"0A1B2C"}}}]}`), &event)
	for range 2 {
		fmt.Println(err, begin(context.Background(), jobs, event))
	}
	for listed, err := range jobs.List(context.Background(), api.Filter{Workflow: "import"}) {
		job, waitErr := jobs.Wait(context.Background(), listed.ID)
		fmt.Println(job.ID, string(job.Steps[0].Output), err, waitErr)
	}
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// s3-44aeb15383bacd04 "read a b.csv of inbox" <nil> <nil>
}
