// Command makegood runs and checks workflows from a terminal: package command, with the workflows and agents of this
// repository in it.
package main

import (
	"os"

	// Roots for https where the system has none, as in the container image, which holds nothing but this command.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/makegood-dev/makegood/command"
	"github.com/makegood-dev/makegood/workflows"
)

func main() { command.Main(workflows.Files, workflows.Agents(os.Getenv)...) }
