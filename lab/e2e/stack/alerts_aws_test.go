//go:build aws

package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/groupnotify"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// alerted keeps how many jobs each alert was about.
type alerted struct {
	mu     sync.Mutex
	counts []int
}

// Alert is what notify.Alerter says.
func (a *alerted) Alert(_ context.Context, alert notify.Alert) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts = append(a.counts, alert.Count)
	return nil
}

// Functions of a stack alert as one: each has its own connection to the table, which says what was told and counts the rest.
func TestFunctionsOfAStackAlertAsOne(t *testing.T) {
	db := dynamodb.NewFromConfig(standin.Config(standin.DynamoDB(t).Endpoint))
	table := "mg" + strings.ToLower(rand.Text()[:10]) + "-jobs"
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(table, "due")); err != nil {
		t.Fatal(err)
	}
	var to alerted
	now := time.Now()
	function := func() *groupnotify.Grouped {
		places, err := dynamostore.New(dynamostore.Config{Client: db, Table: table, Index: "due"})
		if err != nil {
			t.Fatal(err)
		}
		return groupnotify.New(groupnotify.Config{To: []notify.Alerter{&to}, Places: places.Alerts(), Where: func() notify.Where { return notify.Where{} }, Now: func() time.Time { return now }})
	}
	announce := func(by *groupnotify.Grouped, at time.Time, from, to int) (gathered int) {
		errs := make([]error, to-from)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = by.Announce(t.Context(), notify.Notice{Job: fmt.Sprint("j-", from+i), Workflow: "order", Step: "charge", Announcement: job.Announcement{
					Seq: 1, ProcessState: makegood.JobError, At: at, Operator: true,
				}})
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil && !errors.Is(err, notify.ErrGathered) {
				t.Error(err)
			}
			if err != nil {
				gathered++
			}
		}
		return gathered
	}
	a, b := function(), function()
	announce(a, now, 0, 10)
	now = now.Add(10 * time.Second)
	stopped := now
	if n := announce(b, stopped, 10, 20); n != 10 {
		t.Errorf("%d of 10 wait for the next alert", n)
	}
	now = now.Add(groupnotify.Window)
	if n := announce(a, stopped, 10, 15) + announce(b, stopped, 15, 20); n != 0 {
		t.Errorf("%d wait although the window is over", n)
	}
	if !slices.Equal(to.counts, []int{10, 10}) {
		t.Errorf("alerts of %v jobs, want one of 10, then one of the 10 others", to.counts)
	}
}
