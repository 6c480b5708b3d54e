// Command inits prints the size and the start of each Lambda function: the size of its file and archive, the time from
// the start of the process to its first request for an event, and the most memory that it held until then. With -rie it
// also starts each under the runtime interface emulator of AWS, and prints the time that the emulator reports. make
// functions-init builds the functions as they are deployed, and calls it.
//
// Sizes are counts, and a test bounds them. Times are of this machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	folder := flag.String("built", ".build/"+runtime.GOARCH, "the folder of the functions, as make functions builds them")
	rounds := flag.Int("rounds", 20, "start each function so many times")
	rie := flag.String("rie", os.Getenv("MAKEGOOD_RIE"), "aws-lambda-rie, to start each function under it too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *folder, *rounds, *rie)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inits:", err)
		os.Exit(1)
	}
}

// function is a function of the stack, with the environment that its start needs beside the place of the stack.
type function struct {
	name, built string
	environment []string
}

func functions() []function {
	return []function{
		{"scheduler", "scheduler", nil},
		{"supervisor", "supervisor", nil},
		{"agent inventory", "agent", []string{"MAKEGOOD_AGENT=inventory"}},
		{"agent http", "agent", []string{"MAKEGOOD_AGENT=http"}},
		{"door submit", "door", []string{"MAKEGOOD_DOOR=submit"}},
		{"door operate", "door", []string{"MAKEGOOD_DOOR=operate"}},
	}
}

func run(ctx context.Context, out io.Writer, folder string, rounds int, rie string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "FUNCTION\tFILE MB\tARCHIVE MB\tLEAST MS\tINIT MS\tMOST MS\tMEMORY MB\t")
	if rie != "" {
		fmt.Fprint(table, "LEAST MS, RIE\tINIT MS, RIE\t")
	}
	fmt.Fprintln(table)
	for _, f := range functions() {
		bootstrap := filepath.Join(folder, f.built, "bootstrap")
		size, err := sizeOf(bootstrap)
		if err != nil {
			return fmt.Errorf("%w (make functions builds them)", err)
		}
		var starts []start
		for range rounds {
			s, err := startOf(ctx, bootstrap, f)
			if err != nil {
				return fmt.Errorf("start %s: %w", f.name, err)
			}
			starts = append(starts, s)
		}
		slices.SortFunc(starts, func(a, b start) int { return int(a.took - b.took) })
		least, median, most := starts[0], starts[len(starts)/2], starts[len(starts)-1]
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t", f.name, mb(size.file), mb(size.archive), ms(least.took), ms(median.took), ms(most.took), mb(median.memory))
		if rie != "" {
			var took []time.Duration
			for range max(1, rounds/4) {
				one, err := underRIE(ctx, rie, bootstrap, f)
				if err != nil {
					return fmt.Errorf("start %s under %s: %w", f.name, rie, err)
				}
				took = append(took, one)
			}
			slices.Sort(took)
			fmt.Fprintf(table, "%.1f\t%.1f\t", ms(took[0]), ms(took[len(took)/2]))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func mb(bytes int64) float64        { return float64(bytes) / (1 << 20) }
func ms(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }

// environment is that of a function's process, with AWS at this address.
func environment(f function, aws string, more ...string) []string {
	own := []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL=" + aws,
		"AWS_LAMBDA_FUNCTION_NAME=" + strings.ReplaceAll(f.name, " ", "-"), "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
		"MAKEGOOD_TABLE=jobs", "MAKEGOOD_INDEX=CompleteBy", "MAKEGOOD_QUEUE_PREFIX=test-", "MAKEGOOD_LOG_LEVEL=WARN",
		"MAKEGOOD_AGENTS=inventory,payments,shipping,http,hello",
	}
	return slices.Concat(own, f.environment, more)
}
