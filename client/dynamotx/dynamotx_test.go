package dynamotx

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const day = 24 * time.Hour

// table is a DynamoDB that knows one workflow, and nothing else.
func table(t *testing.T) *dynamodb.Client {
	t.Helper()
	compiled, err := workflowfile.Parse("w.yaml", []byte("name: order\nsteps: [{name: first, agent: a}]"))
	if err != nil {
		t.Fatal(err)
	}
	definition, err := json.Marshal(compiled.Definition)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
			http.Error(w, "only GetItem is known here", http.StatusBadRequest)
			return
		}
		if strings.Contains(string(asked), `"workflow#order"`) {
			fmt.Fprintf(w, `{"Item":{"PK":{"S":"workflow#order"},"Definition":{"S":%q},"StoreFormat":{"N":"2"}}}`, compiled.Hash)
			return
		}
		fmt.Fprintf(w, `{"Item":{"PK":{"S":"definition"},"Data":{"B":%s}}}`, definition)
	}))
	t.Cleanup(server.Close)
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
}

// Whatever else the stack stores of a job leaves with it; an input that its submitter stored must too.
func TestAnInputExpiresAsTheStacksPartsDo(t *testing.T) {
	for _, c := range []struct {
		name      string
		retention time.Duration
		startIn   time.Duration
		expires   time.Duration // zero: never
	}{
		{"jobs are kept for ten days", 10 * day, 0, 70 * day},
		{"jobs are kept for ever", Forever, 0, 0},
		{"the job starts after its input would be gone", 10 * day, 300 * day, 0},
	} {
		submitter, err := New(Config{Client: table(t), Table: "jobs", Retention: c.retention})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		sub := makegood.Submission{Workflow: "order", ID: "o-1", Input: []byte(`{"note":"` + strings.Repeat("x", 300) + `"}`)}
		if c.startIn > 0 {
			sub.StartAt = now.Add(c.startIn)
		}
		items, err := submitter.Items(t.Context(), sub)
		if err != nil || len(items) != 2 {
			t.Fatalf("%s: got %d items, %v, want the job and its input", c.name, len(items), err)
		}
		if _, ok := items[0].Put.Item["ExpiresAt"]; ok {
			t.Errorf("%s: the job expires, and has not ended", c.name)
		}
		got, ok := items[1].Put.Item["ExpiresAt"].(*types.AttributeValueMemberN)
		if !ok {
			if c.expires != 0 {
				t.Errorf("%s: the input never expires, want after %s", c.name, c.expires)
			}
			continue
		}
		at, err := strconv.ParseInt(got.Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Unix(at, 0).Sub(now).Round(day); after != c.expires {
			t.Errorf("%s: the input expires after %s, want %s", c.name, after, c.expires)
		}
	}
}

// A default would be wrong for somebody: too short loses inputs, too long never lets them go.
func TestTheRetentionMustBeSaid(t *testing.T) {
	if _, err := New(Config{Client: &dynamodb.Client{}, Table: "jobs"}); err == nil || !strings.Contains(err.Error(), "retention") {
		t.Errorf("New without a retention: %v, want an error that names it", err)
	}
}
