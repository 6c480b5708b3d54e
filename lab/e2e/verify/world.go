package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/testkit/localdoors"
)

const (
	// stackName is that of the stack, and what the names of the two beside it begin with.
	stackName = "makegood-verify"
	// seed is that of the shop's faults.
	seed = 7
)

// world is what was deployed.
type world struct {
	config  aws.Config
	options options
	report  *report

	folder string
	local  *services.Server // the shop of a rehearsal
	shop   string           // its URL, without a slash behind it
	stacks []sam.Stack      // what is to be torn down
	client *client.Client
	at     doors.Addresses
	doors  *localdoors.LocalDoors // those of a rehearsal
	began  time.Time              // of the orders
	jobs   int
}

// verify does the checks in turn. What rests on something that failed is not tried.
func (w *world) verify(ctx context.Context) {
	if !w.options.rehearse {
		_ = w.report.try("The adapters' suites", func() ([]string, error) { return w.suites(ctx) })
	}
	if w.report.try("What the account lacks", func() ([]string, error) { return w.preflight(ctx) }) != nil {
		return
	}
	if w.report.try("Deployment", func() ([]string, error) { return w.deploy(ctx) }) != nil {
		return
	}
	_ = w.report.try("An alarm is heard", func() ([]string, error) { return w.alarm(ctx) })
	_ = w.report.try("What each role may do", func() ([]string, error) { return w.roles(ctx) })
	_ = w.report.try("Who may knock at which door", func() ([]string, error) { return w.knocks(ctx) })
	_ = w.report.try("Sixty steps, and the time of a hop", func() ([]string, error) { return w.hops(ctx) })
	if w.report.try("Orders", func() ([]string, error) { return w.orders(ctx) }) == nil {
		_ = w.report.try("What it cost", func() ([]string, error) { return w.bill(ctx) })
	}
}

func (w *world) architecture() string {
	if runtime.GOARCH == "amd64" && w.options.rehearse {
		return "Architecture=x86_64" // A stand-in runs the functions on this machine.
	}
	return "Architecture=arm64"
}

// environment is that of samconfig.toml whose parameters are deployed.
const environment = "prod"

// preflight does what make deploy does first.
func (w *world) preflight(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "run", "./lab/e2e/preflight", "-stack", stackName, "-env", environment).CombinedOutput()
	return []string{"```", strings.TrimSpace(string(out)), "```"}, err
}

// parameters are those of prod, and where the shop is.
func (w *world) parameters() ([]string, error) {
	samconfig, err := os.ReadFile("samconfig.toml")
	if err != nil {
		return nil, err
	}
	environments, err := sam.Overrides(string(samconfig))
	if err != nil {
		return nil, err
	}
	all := []string{w.architecture(), "Shop=" + w.shop}
	for _, name := range slices.Sorted(maps.Keys(environments[environment])) {
		all = append(all, name+"="+environments[environment][name])
	}
	if w.options.rehearse {
		all = append(all, "HttpAllow=127.0.0.1")
	}
	return all, nil
}

// deploy opens a shop, deploys the stack that is told where it is, and publishes workflows that ask it.
func (w *world) deploy(ctx context.Context) (found []string, err error) {
	if w.folder, err = os.MkdirTemp("", "makegood-verify-"); err != nil {
		return nil, err
	}
	if err := w.openShop(ctx); err != nil {
		return nil, fmt.Errorf("the shop: %w", err)
	}
	parameters, err := w.parameters()
	if err != nil {
		return nil, err
	}
	if err := w.put(ctx, sam.Stack{Template: "template.yaml", Name: stackName, Parameters: parameters}); err != nil {
		return nil, err
	}
	if err := w.knock(ctx); err != nil {
		return nil, err
	}
	for _, text := range []string{orderFor(w.shop), hopsFor(w.shop)} {
		if _, err := w.client.Publish(ctx, []byte(text)); err != nil {
			return nil, err
		}
	}
	return []string{"`template.yaml` is deployed as " + stackName + ", with what `prod` sets: " + strings.Join(parameters, " ") + "."}, nil
}

// put builds and deploys a stack, and remembers that it must go.
func (w *world) put(ctx context.Context, s sam.Stack) error {
	s.Root = "."
	folder := filepath.Join(w.folder, s.Name)
	if err := s.Build(ctx, folder, nil); err != nil {
		return err
	}
	w.stacks = append(w.stacks, s)
	return s.Deploy(ctx, folder)
}

func (w *world) openShop(ctx context.Context) (err error) {
	script := services.Script{Profile: services.FaultsSome, Seed: seed}.Answering()
	if w.options.rehearse {
		if w.local, err = services.Start("127.0.0.1:0", services.Options{Script: script}); err != nil {
			return err
		}
		w.shop = w.local.URL()
		return nil
	}
	s := sam.Stack{Template: "lab/e2e/verify/shop.yaml", Name: stackName + "-shop", Parameters: []string{w.architecture(), fmt.Sprintf("Seed=%d", seed)}}
	if err := w.put(ctx, s); err != nil {
		return err
	}
	outputs, err := w.outputs(ctx, s.Name)
	w.shop = strings.TrimSuffix(outputs["Url"], "/")
	return err
}

// outputs are those of a stack by their keys.
func (w *world) outputs(ctx context.Context, name string) (map[string]string, error) {
	out, err := cloudformation.NewFromConfig(w.config).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return nil, err
	}
	outputs := map[string]string{}
	for _, s := range out.Stacks {
		for _, o := range s.Outputs {
			outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
		}
	}
	return outputs, nil
}

// ask makes a request to the shop.
func (w *world) ask(ctx context.Context, method, path string, read func(*http.Response) error) error {
	request, err := http.NewRequestWithContext(ctx, method, w.shop+path, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	err = read(answer)
	return errors.Join(err, answer.Body.Close())
}

// tearDown deletes what was deployed, the last first, with the table and the key that the stack retains.
func (w *world) tearDown(ctx context.Context) {
	_ = w.report.try("Tearing down", func() ([]string, error) {
		var wrong []error
		for i := len(w.stacks) - 1; i >= 0; i-- {
			s := w.stacks[i]
			retained, err := w.retained(ctx, s.Name)
			wrong = append(wrong, err, s.Delete(ctx))
			wrong = append(wrong, w.deleteRetained(ctx, retained))
		}
		if w.doors != nil {
			wrong = append(wrong, w.doors.Close())
		}
		if w.local != nil {
			wrong = append(wrong, w.local.Close())
		}
		wrong = append(wrong, os.RemoveAll(w.folder))
		return []string{fmt.Sprintf("%d stacks and the table are deleted; the key goes in seven days. What stays is the bucket that SAM keeps for all stacks.", len(w.stacks))}, errors.Join(wrong...)
	})
}
