package doors_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client/doors"
)

// The jobs of a deployed stack. It is compiled and not run: it needs the stack, and a role that may knock.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	at, err := doors.Find(ctx, cfg, "shop-prod")
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs, err := doors.New(doors.Config{AWS: cfg, Stack: "shop-prod", Addresses: at})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := jobs.Submit(ctx, makegood.Submission{Workflow: "order", ID: "o-1", Input: json.RawMessage(`{"id":"o-1"}`)})
	fmt.Println(job.ProcessState, err)
}
