// Command demo shows what Makegood promises. It opens a shop with services that fail, hang, hang up and
// answer twice, sends 300 orders through it with `makegood run`, which reserves each line of an order by itself, kills
// that with SIGKILL twice on the way, and then compares the shop's ledger with the states in which the orders ended. It
// exits 0 only if every order is finished, undone, or in Error with a reason, and no undone order was charged.
package main

import (
	"bytes"
	"context"
	_ "embed" // for order.yaml
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/workflows/order"
)

// orderYAML is the workflow file.
//
//go:embed order.yaml
var orderYAML []byte

// killsAt are the shares of the orders that have ended when the engine is killed.
var killsAt = []float64{0.25, 0.6}

// readyWithin is how long the shop may take to open.
const readyWithin = time.Minute

func main() {
	seed := flag.Uint64("seed", 7, "the same `number` gives the same faults")
	orders := flag.String("orders", filepath.Join("examples", "orders", "orders.jsonl"), "`file` of orders, one JSON object a line with id, customer, total and lines")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Runs the demo: orders, services with faults, the engine killed twice.\n\nExample: go run ./examples/demo -seed 3\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, *seed, *orders)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// stage is what the demo plays on: a folder that is removed again, and the shop.
type stage struct {
	dir      string
	shop     string // its URL
	workflow string
	input    string
	data     string
	lines    map[string]int // how many lines each order has, by its id
}

func run(ctx context.Context, seed uint64, input string) (good bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "makegood-demo-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s := &stage{dir: dir, input: input, data: filepath.Join(dir, "data")}
	fmt.Println("Building makegood and the shop ...")
	if err := s.build(ctx); err != nil {
		return false, err
	}
	closeShop, err := s.openShop(ctx, seed)
	if err != nil {
		return false, err
	}
	defer closeShop()
	if err := s.write(); err != nil {
		return false, err
	}
	fmt.Printf("The shop is open at %s, with faults. %d orders, please.\n", s.shop, len(s.lines))
	began := time.Now()
	kills, err := s.runAll(ctx, len(s.lines))
	if err != nil {
		return false, err
	}
	script := services.Script{Profile: services.FaultsNasty, Seed: seed}
	return s.report(ctx, script, kills, time.Since(began))
}

// build makes the two programs, so that they can be killed as a user would kill them.
func (s *stage) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.dir+string(filepath.Separator), "./cmd/makegood", "./examples/shop")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build (run this from the project's root): %w", err)
	}
	return nil
}

// openShop starts the services as a process of their own, which outlives every kill of the engine.
func (s *stage) openShop(ctx context.Context, seed uint64) (shut func(), err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "shop"), "--addr", "127.0.0.1:0", "--faults", string(services.FaultsNasty), "--seed", fmt.Sprint(seed))
	cmd.Stderr = os.Stderr
	// "shop: http://127.0.0.1:34567 (faults nasty, seed 7)"
	s.shop, shut, err = services.Launch(cmd, 1, readyWithin)
	return shut, err
}

// write puts the workflow, with the shop's address in it, into a file, and counts the lines of the orders.
func (s *stage) write() error {
	text, err := os.ReadFile(s.input)
	if err != nil {
		return err
	}
	s.lines = map[string]int{}
	for orders := json.NewDecoder(bytes.NewReader(text)); orders.More(); {
		var o struct {
			ID    string
			Lines []any
		}
		if err := orders.Decode(&o); err != nil {
			return fmt.Errorf("read order %d of %s: %w", len(s.lines)+1, s.input, err)
		}
		s.lines[o.ID] = len(o.Lines)
	}
	s.workflow = filepath.Join(s.dir, "order.yaml")
	yaml := bytes.ReplaceAll(orderYAML, []byte(order.DefaultShop), []byte(s.shop))
	// Counted, since machines may be slow.
	yaml = bytes.ReplaceAll(yaml, []byte("for: 10s"), []byte("attempts: 10"))
	return os.WriteFile(s.workflow, yaml, 0o644)
}

// runAll runs the orders, kills the engine on the way, and lets the last run come to its end.
func (s *stage) runAll(ctx context.Context, total int) (kills int, err error) {
	for _, share := range killsAt {
		killed, err := s.runUntil(ctx, int(share*float64(total)))
		if err != nil {
			return kills, err
		}
		if killed {
			kills++
			fmt.Printf("kill -9 after more than %d orders had ended. The same command again:\n", int(share*float64(total)))
		}
	}
	cmd := s.engine(ctx)
	if err := cmd.Run(); err != nil && !endedOtherwise(err) {
		return kills, fmt.Errorf("makegood run: %w", err)
	}
	return kills, nil
}

// engine is the command that a user would type.
func (s *stage) engine(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "makegood"), "run", s.workflow, "--input", s.input, "--data", s.data)
	cmd.Env = append(os.Environ(), "MAKEGOOD_SHOP="+s.shop)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// runUntil runs the engine and kills it when that many orders have ended. killed is false if it was
// faster.
func (s *stage) runUntil(ctx context.Context, ended int) (killed bool, err error) {
	cmd := s.engine(ctx)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-done:
			if err != nil && !endedOtherwise(err) {
				return false, fmt.Errorf("makegood run: %w", err)
			}
			return false, nil
		case <-poll.C:
			if s.endedSoFar(ctx) <= ended {
				continue
			}
			// SIGKILL: no handler runs, and the engine tidies up no file.
			killErr := cmd.Process.Kill()
			<-done
			return killErr == nil, nil
		}
	}
}

// endedOtherwise reports whether some job did not end Processed: in this shop that is no failure.
func endedOtherwise(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 2
}
