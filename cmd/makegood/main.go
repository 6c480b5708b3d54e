// Command makegood runs and checks workflows from a terminal: package command, with the workflows and agents of this
// repository in it.
package main

import (
	"os"

	"github.com/makegood-dev/makegood/command"
	"github.com/makegood-dev/makegood/workflows"
)

func main() { command.Main(workflows.Files, workflows.Agents(os.Getenv)...) }
