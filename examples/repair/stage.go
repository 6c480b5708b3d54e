package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	// readyWithin is how long the shop and the engine may take to open.
	readyWithin = 2 * time.Minute
	// lookEvery is how often it is looked whether all jobs are where they should be.
	lookEvery = 200 * time.Millisecond
	// doneWithin is how long that may take.
	doneWithin = 10 * time.Minute
)

// The fault in the orders' definition, and its correction.
const (
	right = "/payments/charge"
	wrong = "/payment/charge"
)

// gift is a workflow with a shipment that is refused, and a refund that is refused for good: the shop knows no such
// place, and its payments are not told the order.
const gift = `
name: gift
onFailure: undo
steps:
  - name: reserve
    agent: inventory
    with: {order: "${ .input.id }", amount: "${ .input.total }"}
    undo: {action: release}
  - name: charge
    agent: http
    with:
      url: SHOP/payments/charge
      body: {order: "${ .input.id }", amount: "${ .input.total }"}
    undo:
      with:
        url: SHOP/payments/refund
        body: {card: closed}
  - name: ship
    agent: http
    with:
      url: SHOP/shipping/no-such-island
      body: {order: "${ .input.id }"}
    undo: none
`

// stage is the scene: a folder that is removed again, a shop and an engine, each a process of its own.
type stage struct {
	dir    string
	orders int
	shop   string // its URL
	engine string // its URL
	jobs   *client.Client
	shut   []func()
	// took is how long finding, correcting and processing the orders took.
	took time.Duration
}

// open builds the programs, and opens the shop and the engine.
func open(ctx context.Context, orders int) (s *stage, err error) {
	dir, err := os.MkdirTemp("", "makegood-repair-")
	if err != nil {
		return nil, err
	}
	s = &stage{dir: dir, orders: orders}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	fmt.Println("Building makegood and the shop ...")
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cmd/makegood", "./examples/shop")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return s, fmt.Errorf("build (run this from the project's root): %w", err)
	}
	// shop: http://127.0.0.1:34567 (faults none, seed 1)
	if s.shop, err = s.serve(ctx, 1, "shop", "--addr", "127.0.0.1:0"); err != nil {
		return s, err
	}
	if err := os.Mkdir(filepath.Join(dir, "workflows"), 0o700); err != nil {
		return s, err
	}
	if err := errors.Join(s.define(wrong), s.write("gift.yaml", strings.ReplaceAll(gift, "SHOP", s.shop))); err != nil {
		return s, err
	}
	// makegood serves http://127.0.0.1:34568
	if s.engine, err = s.serve(ctx, 2, "makegood", "dev", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--workflows", filepath.Join(dir, "workflows")); err != nil {
		return s, err
	}
	s.jobs, err = client.New(s.engine)
	return s, err
}

// serve starts a process, and returns the word of its first line at that place: its address.
func (s *stage) serve(ctx context.Context, word int, name string, args ...string) (url string, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, name), args...)
	cmd.Env = append(os.Environ(), "MAKEGOOD_SHOP="+s.shop)
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return "", err
	}
	cmd.Stderr = log // each of 10,000 jobs in Error writes a line to it
	s.shut = append(s.shut, func() { _ = log.Close() })
	url, shut, err := services.Launch(cmd, word, readyWithin)
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("%w: %s", err, said)
	}
	s.shut = append(s.shut, shut)
	return url, nil
}

// close ends the processes and removes the folder.
func (s *stage) close() {
	for _, shut := range s.shut {
		shut()
	}
	_ = os.RemoveAll(s.dir) // below the system's folder for such
}

// define writes the definition of an order with the charge at a path of the shop. It stops when a step is given up:
// in front of a person.
func (s *stage) define(charge string) error {
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(s.shop))
	yaml = bytes.ReplaceAll(yaml, []byte("onFailure: undo"), []byte("onFailure: stop"))
	return s.write("order.yaml", string(bytes.ReplaceAll(yaml, []byte(right), []byte(charge))))
}

// write puts a workflow where the engine looks for it, whole at any moment.
func (s *stage) write(name, text string) error {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(s.dir, "workflows", name))
}

// makegood runs the command, as a person would type it, and shows both.
func (s *stage) makegood(ctx context.Context, args ...string) error {
	fmt.Printf("\n$ makegood %s\n", shellWords(args))
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "makegood"), append(args, "--addr", s.engine)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("makegood %s: %w", args[0], err)
	}
	return nil
}

// shellWords writes arguments as a shell wants them.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = arg; strings.ContainsAny(arg, " {}\"") {
			words[i] = "'" + arg + "'"
		}
	}
	return strings.Join(words, " ")
}

// until waits until no job of a workflow is in any of these states.
func (s *stage) until(ctx context.Context, workflow string, none ...makegood.ProcessState) error {
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		left, err := s.anyIn(ctx, workflow, none)
		if err != nil || !left {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until no %s is in %v: %w", workflow, none, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// anyIn reports whether a job of a workflow is in one of these states.
func (s *stage) anyIn(ctx context.Context, workflow string, states []makegood.ProcessState) (bool, error) {
	for _, state := range states {
		for _, err := range s.jobs.List(ctx, api.Filter{State: state, Workflow: workflow}) {
			return err == nil, err
		}
	}
	return false, nil
}
