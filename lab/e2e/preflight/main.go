// Command preflight looks, before make deploy changes anything, whether the account has what the stack asks for, and
// says what it lacks and what to do. It asks AWS, and changes nothing there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// askFor is how long all of it may take.
const askFor = time.Minute

func main() {
	stack := flag.String("stack", "", "`name` of the stack")
	environment := flag.String("env", "dev", "`environment` of samconfig.toml")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Says what the account lacks that a stack needs. Parameters, Name=Value, take the place of samconfig.toml's.\n\nExample: go run ./lab/e2e/preflight -stack makegood-prod -env prod ReserveConcurrency=yes\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	lacks, err := run(ctx, *stack, *environment, flag.Args())
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "preflight:", err)
		os.Exit(1)
	}
	if lacks {
		fmt.Fprintln(os.Stderr, "preflight: nothing was changed. docs/operate.md has more, under Quota and under Rollback.")
		os.Exit(1)
	}
}

// run prints what it finds, and reports whether something must be mended first.
func run(ctx context.Context, stack, environment string, parameters []string) (lacks bool, err error) {
	template, err := os.ReadFile("template.yaml")
	if err != nil {
		return false, err
	}
	samconfig, err := os.ReadFile("samconfig.toml")
	if err != nil {
		return false, err
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return false, fmt.Errorf("AWS configuration: %w", err)
	}
	status, standing, err := stateOf(ctx, cloudformation.NewFromConfig(c), stack)
	if err != nil {
		return false, err
	}
	a, err := askedFor(string(template), string(samconfig), environment, parameters, standing)
	if err != nil {
		return false, err
	}
	has, err := limits(ctx, c)
	if err != nil {
		return false, err
	}
	found := slices.Concat(lacksOfTemplate(a), lacksOfPayloads(a), lacksOfState(stack, status), lacksOfConcurrency(a, has))
	for _, f := range found {
		fmt.Println("preflight:", f.text)
		lacks = lacks || f.refuses
	}
	if len(found) == 0 {
		fmt.Println("preflight: the account has what the stack asks for")
	}
	return lacks, nil
}
