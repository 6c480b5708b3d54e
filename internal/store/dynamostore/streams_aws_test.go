//go:build aws

package dynamostore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
)

// image is an item in a stream, as far as the recipe of docs/changes.md reads it.
type image struct {
	PK, SK, ProcessState, Workflow struct{ S string }
	Rev                            struct{ N string }
}

type streamed struct {
	Dynamodb struct{ OldImage, NewImage image }
}

// transitions are the changes of jobs' states that records tell: the recipe.
func transitions(records []streamed) (all []string) {
	for _, r := range records {
		was, is := r.Dynamodb.OldImage, r.Dynamodb.NewImage
		if strings.HasPrefix(is.PK.S, "job#") && is.SK.S == "job" && was.ProcessState.S != is.ProcessState.S {
			all = append(all, fmt.Sprintf("%s %s %s>%s at %s", is.PK.S, is.Workflow.S, was.ProcessState.S, is.ProcessState.S, is.Rev.N))
		}
	}
	return all
}

// The stream of the table tells each change of a job's state once, in order, with the attributes that the docs name; what is
// written beside jobs, and what leaves the state as it is, is no change.
func TestTheStreamOfTheTableTellsTheStatesOfJobs(t *testing.T) {
	tab := newTable(t)
	name := tab.name + "-streamed"
	schema := Schema(name, "due")
	schema.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	if err := standin.CreateTable(t.Context(), tab.config.Client, schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = tab.config.Client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name})
	})
	config := tab.config
	config.Table = name
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_700_000_000_000).UTC()
	j := job.Job{
		ID: "s-1", Workflow: "order", Definition: "d", Round: 1, ProcessState: makegood.JobPending, Desired: makegood.JobProcessed,
		CompleteBy: now.Add(time.Minute), CreatedAt: now, Input: wire.Inline([]byte("{}")), InputHash: "h", Birth: "b", Secret: []byte("s"),
		Steps: []job.StepState{{Name: "charge", Attempt: 1, Forward: job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: now, Cause: "submit"}}},
	}
	if err := s.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	for _, state := range []makegood.ProcessState{makegood.JobProcessing, makegood.JobProcessing, makegood.JobProcessed} {
		j, err := s.Load(t.Context(), "s-1")
		if err != nil {
			t.Fatal(err)
		}
		seen := j.CompleteBy
		if j.ProcessState = state; state.Finished() {
			j.CompleteBy = time.Time{}
		}
		if err := s.Save(t.Context(), store.Change{Job: j, Seen: seen}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"job#s-1 order >Pending at 1", "job#s-1 order Pending>Processing at 2", "job#s-1 order Processing>Processed at 4"}
	var got []string
	for deadline := time.Now().Add(2 * time.Minute); !slices.Equal(got, want) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		got = transitions(readStream(t, tab, name))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// readStream reads all that there is in the stream of a table.
func readStream(t *testing.T, tab *table, name string) (all []streamed) {
	t.Helper()
	described, err := tab.config.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil || described.Table.LatestStreamArn == nil {
		t.Fatalf("the table has no stream: %v", err)
	}
	arn := *described.Table.LatestStreamArn
	var stream struct {
		StreamDescription struct {
			Shards []struct {
				ShardID string `json:"ShardId"`
			}
		}
	}
	askStream(t, "DescribeStream", map[string]any{"StreamArn": arn}, &stream)
	for _, shard := range stream.StreamDescription.Shards {
		var at struct{ ShardIterator, NextShardIterator string }
		askStream(t, "GetShardIterator", map[string]any{"StreamArn": arn, "ShardId": shard.ShardID, "ShardIteratorType": "TRIM_HORIZON"}, &at)
		var page struct{ Records []streamed }
		askStream(t, "GetRecords", map[string]any{"ShardIterator": at.ShardIterator}, &page)
		all = append(all, page.Records...)
	}
	slices.SortStableFunc(all, func(a, b streamed) int { return rev(a) - rev(b) })
	return all
}

// rev is the revision of the item: several shards have no order but that.
func rev(r streamed) int {
	n, _ := strconv.Atoi(r.Dynamodb.NewImage.Rev.N) // What has none is no job.
	return n
}

// askStream asks the API of streams, for which one call in a test is no reason to have its client.
func askStream(t *testing.T, operation string, in, out any) {
	t.Helper()
	config := standin.DynamoDB(t).Config(t)
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *config.BaseEndpoint, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+operation)
	who, err := config.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), who, request, hex.EncodeToString(sum[:]), "dynamodb", config.Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", operation, answer.Status, err)
	}
}
