// Package onlambda has the mains of your Lambda functions, one call each:
//
//	func main() { onlambda.Scheduler(trips.Files) }     // functions/scheduler
//	func main() { onlambda.Agent(trips.Agents...) }     // functions/agent
//	func main() { onlambda.Supervisor() }               // functions/supervisor
//	func main() { onlambda.Door(trips.Files) }          // functions/door
//
// Each reads its configuration from the environment that the template sets, and does not return: Lambda ends the
// process. Where the configuration is wrong, every mistake is written to standard error, and the process ends with
// exit code 1.
package onlambda

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/deployed"
)

// Scheduler moves jobs on: it handles batches of the events queue and of the submissions queue. files hold workflows,
// *.yaml or *.yml, also in folders below. The first batch makes the ones known that have names new to the stack.
//
// inline are agents whose inline attempts run in this function (docs/inline.md). Each needs its own function beside
// that, for the attempts that go through its queue. This function must have the permissions that their work needs.
func Scheduler(files fs.FS, inline ...agent.Handler) {
	start(deployed.Scheduler(context.Background(), os.Getenv, files, inline))
}

// Agent runs the agent that MAKEGOOD_AGENT names, one of these or the built-in http: it handles batches of its tasks
// queue.
func Agent(agents ...agent.Handler) {
	start(deployed.Agent(context.Background(), os.Getenv, agents))
}

// Supervisor sweeps once for every event of its schedule.
func Supervisor() {
	start(deployed.Supervisor(context.Background(), os.Getenv))
}

// Door answers requests to a function URL. Behind one that IAM guards, MAKEGOOD_DOOR is the set of calls it allows:
// submit, read or operate. With MAKEGOOD_DOOR=complete it serves a URL without authentication, where a completion
// token carries the permission. files are as for Scheduler, and made known with the first submission that names them.
func Door(files fs.FS) {
	start(deployed.Door(context.Background(), os.Getenv, files))
}

func start[H any](handler H, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), err)
		os.Exit(1)
	}
	lambda.Start(handler)
}
