// Command verify does what only a real account can show: it deploys Makegood to the account of the credentials
// under a name of its own, runs the adapters' suites and orders there, tries what each role may do, counts hops
// and dollars, writes a report, and tears everything down again. make aws-verify runs it.
//
// With -rehearse it does the same against whatever answers at AWS_ENDPOINT_URL, with a shop on this machine; what
// a stand-in cannot show is in the report by name. That is how this command itself is tested.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// The exit codes: all was as it should be, something was not, or it did not come to that.
const (
	codeBad     = 1
	codeNotRun  = 2
	tearDownFor = 15 * time.Minute
)

// options are what the flags say.
type options struct {
	account  string
	report   string
	orders   int
	rehearse bool
	keep     bool
	settle   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.account, "account", "", "the `number` of the account to deploy to; without it you are asked")
	flag.StringVar(&o.report, "report", ".build/aws-verify.md", "`file` to write the report to")
	flag.IntVar(&o.orders, "orders", 200, "how many orders to send")
	flag.BoolVar(&o.rehearse, "rehearse", false, "against the stand-in at AWS_ENDPOINT_URL")
	flag.BoolVar(&o.keep, "keep", false, "leave what was deployed, to look at it")
	flag.DurationVar(&o.settle, "settle", 6*time.Minute, "how long to wait for CloudWatch to have counted")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Verifies Makegood on an AWS account, and tears down what it made. It costs less than a dollar.\n\nExample: make aws-verify, or go run ./lab/e2e/verify -account 123456789012\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, o options) (code int, err error) {
	if (os.Getenv("AWS_ENDPOINT_URL") != "") != o.rehearse {
		return codeNotRun, errors.New("AWS_ENDPOINT_URL and -rehearse go together: with both it is a stand-in that is asked, with neither it is AWS")
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return codeNotRun, err
	}
	if c.Region == "" {
		return codeNotRun, errors.New("no region is set: set AWS_REGION")
	}
	if err := confirm(ctx, c, o); err != nil {
		return codeNotRun, err
	}
	r := newReport(ctx, c.Region, o)
	w := &world{config: c, options: o, report: r}
	w.verify(ctx)
	if !o.keep {
		// Whatever stopped the run does not stop this.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownFor)
		w.tearDown(down)
		cancel()
	}
	if err := r.write(o.report); err != nil {
		return codeBad, err
	}
	fmt.Printf("%d of %d checks passed; the report is %s\n", r.passed(), len(r.checks), o.report)
	if r.passed() < len(r.checks) {
		return codeBad, nil
	}
	return 0, nil
}

// confirm makes sure that the account is the one that is meant.
func confirm(ctx context.Context, c aws.Config, o options) error {
	who, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("no AWS credentials that work: %w; log in (aws sso login), or set AWS_PROFILE", err)
	}
	account := aws.ToString(who.Account)
	fmt.Printf("This deploys %s and more to account %s in %s, as %s, and deletes it again.\n", stackName, account, c.Region, aws.ToString(who.Arn))
	given := o.account
	if given == "" {
		fmt.Print("Type the number of the account to go on: ")
		given, err = bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if strings.TrimSpace(given) != account {
		return fmt.Errorf("the account is %s, not %q: nothing was done", account, strings.TrimSpace(given))
	}
	return nil
}
