// Command agent is a Lambda function that runs one agent, named by MAKEGOOD_AGENT: of package workflows, or http.
package main

import (
	"os"

	"github.com/makegood-dev/makegood/onlambda"
	"github.com/makegood-dev/makegood/workflows"
)

func main() { onlambda.Agent(workflows.Agents(os.Getenv)...) }
