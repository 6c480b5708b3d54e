package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// runDeployer runs a command that deploys to whatever answers: it starts MiniStack and says in the command's
// environment where it is. sam is first in its PATH.
func runDeployer(ctx context.Context, command []string) error {
	sam := programs()["sam"].product
	if err := install(ctx, sam); err != nil {
		return fmt.Errorf("%s: %w", sam, err)
	}
	return onMiniStack(ctx, command, func(product product, endpoint string) []string {
		fmt.Printf("== %s at %s, sam %s\n", product, endpoint, sam.version)
		return []string{
			"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1",
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "SAM_CLI_TELEMETRY=0",
			standin.DeployedVariable + "=" + product.String(),
			"PATH=" + filepath.Join(sam.folder(), "venv/bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		}
	})
}

// runOnStandIn runs a command that needs DynamoDB and SQS, and says where they are as it says it to the tests. What
// the command prints is alone on standard output.
func runOnStandIn(ctx context.Context, command []string) error {
	return onMiniStack(ctx, command, product.environment)
}

// onMiniStack starts MiniStack and runs a command, in whose environment it says where that is and nothing of any
// account.
func onMiniStack(ctx context.Context, command []string, environment func(product, string) []string) error {
	product := miniStack()
	running, err := start(ctx, product)
	if err != nil {
		return fmt.Errorf("%s: %w", product, err)
	}
	defer running.stop()
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Env = append(withoutAccount(os.Environ()), "AWS_EC2_METADATA_DISABLED=true")
	process.Env = append(process.Env, environment(product, running.endpoint)...)
	process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
	return process.Run()
}

// withoutAccount leaves out of an environment what could name somebody's account.
func withoutAccount(environment []string) []string {
	var rest []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "AWS_") && !strings.HasPrefix(variable, "MAKEGOOD_") {
			rest = append(rest, variable)
		}
	}
	return rest
}
