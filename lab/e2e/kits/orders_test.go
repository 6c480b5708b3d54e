//go:build kits

package kits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/address"
	"github.com/makegood-dev/makegood/workflows/order"
)

// actor is a process of the sample that is killed and comes back.
type actor struct {
	name  string
	start func() *process
	runs  *process
}

func (a *actor) begin() { a.runs = a.start() }

// kill ends it as the power would.
func (a *actor) kill(t *testing.T) {
	t.Helper()
	if err := a.runs.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.runs.ends() // killed
}

// The order sample runs with its payments in Python and its shipping in TypeScript, against a shop that fails, hangs and
// answers late. The engine and both agents are killed on the way. Every order ends, and the shop's books agree.
func TestOrdersArePaidInPythonAndShippedInTypeScript(t *testing.T) {
	const orders = 120
	shop, err := services.Start("127.0.0.1:0", services.Options{Script: services.Script{Profile: services.FaultsSome, Seed: 7}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Close() })
	dir, addr := t.TempDir(), freeAddr(t)
	actors := cast(t, dir, addr, shop.URL())
	for _, a := range actors {
		a.begin()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	c, err := client.New("http://"+addr, client.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	for i := range orders {
		submit(ctx, t, c, i)
		if at := i * 4; at%orders == 0 && at > 0 {
			// A quarter, a half, three quarters: engine, payments, shipping.
			victim := actors[at/orders-1]
			reached(ctx, t, c, i)
			victim.kill(t)
			t.Logf("killed %s after %d orders", victim.name, i)
			victim.begin()
		}
	}
	ends := map[string]makegood.ProcessState{}
	for i := range orders {
		job, err := c.Wait(ctx, id(i))
		if err != nil {
			t.Fatal(err)
		}
		ends[job.ID] = job.ProcessState
	}
	for _, wrong := range services.Check(shop.Ledger(), ends) {
		t.Error(wrong)
	}
}

// cast are the engine, the agent in Python and the one in TypeScript.
func cast(t *testing.T, dir, addr, shop string) []*actor {
	t.Helper()
	makegoodCommand := filepath.Join(dir, "makegood")
	command(t, root(t), "go", "build", "-o", makegoodCommand, "./cmd/makegood")
	yaml := bytes.ReplaceAll(order.YAML, []byte("timeout: 1s"), []byte("timeout: 2s"))
	yaml = replace(t, yaml, "    agent: http                 # built in\n    with:\n      url: http://127.0.0.1:4790/payments/charge\n      body: {order: \"${ .input.id }\", amount: \"${ .input.total }\", customer: \"${ .input.customer }\"}\n",
		"    agent: payments\n    with: {order: \"${ .input.id }\", amount: \"${ .input.total }\"}\n")
	yaml = replace(t, yaml, "    undo:\n      with:\n        url: http://127.0.0.1:4790/payments/refund\n        body: {order: \"${ .input.id }\", amount: \"${ .input.total }\"}\n", "    undo: {action: refund}\n")
	yaml = bytes.ReplaceAll(yaml, []byte("attempts: 8"), []byte("attempts: 20"))
	put(t, filepath.Join(dir, "workflows", "order.yaml"), string(yaml))
	shipping := compiled(t, dir, root(t, "examples", "orders", "shipping.ts"))
	env := []string{"MAKEGOOD_URL=http://" + addr, "MAKEGOOD_SHOP=" + shop}
	run := func(cmd func() *exec.Cmd) func() *process {
		return func() *process { return begin(t, cmd(), env...) }
	}
	return []*actor{
		{name: "the engine", start: run(func() *exec.Cmd {
			return exec.Command(makegoodCommand, "dev", "--addr", addr, "--workflows", filepath.Join(dir, "workflows"), "--data", filepath.Join(dir, "data"), "--outside", "payments", "--outside", "shipping")
		})},
		{name: "the payments in Python", start: run(func() *exec.Cmd {
			cmd := exec.Command(need(t, "python3"), root(t, "examples", "orders", "payments.py"))
			cmd.Env = []string{"PYTHONPATH=" + root(t, "kits", "python"), "PYTHONDONTWRITEBYTECODE=1"}
			return cmd
		})},
		{name: "the shipping in TypeScript", start: run(func() *exec.Cmd { return exec.Command(need(t, "node"), shipping) })},
	}
}

// compiled makes JavaScript of an agent in TypeScript, in a project that has the kit installed, and returns its file.
func compiled(t *testing.T, dir, source string) string {
	t.Helper()
	kit := typescriptKit(t)
	name := strings.TrimSuffix(filepath.Base(source), ".ts")
	project := filepath.Join(dir, name)
	put(t, filepath.Join(project, "package.json"), `{"type": "module"}`)
	put(t, filepath.Join(project, name+".ts"), read(t, source))
	command(t, project, need(t, "npm"), "install", "--no-audit", "--no-fund", filepath.Join(kit, "makegood-agent.tgz"))
	modules := filepath.Join(kit, "node_modules")
	command(t, project, filepath.Join(modules, ".bin", "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
		"--typeRoots", filepath.Join(modules, "@types"), "--types", "node", name+".ts")
	return filepath.Join(project, name+".js")
}

func replace(t *testing.T, text []byte, old, with string) []byte {
	t.Helper()
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("the sample's workflow file has no longer:\n%s", old)
	}
	return bytes.Replace(text, []byte(old), []byte(with), 1)
}

func id(i int) string { return fmt.Sprintf("o-%04d", i) }

func submit(ctx context.Context, t *testing.T, c *client.Client, i int) {
	t.Helper()
	input := fmt.Sprintf(`{"id":%q,"customer":"c-%d","total":%d.50}`, id(i), i%97, i%200)
	if _, err := c.Submit(ctx, makegood.Submission{Workflow: "order", ID: id(i), Input: json.RawMessage(input)}); err != nil {
		t.Fatal(err)
	}
}

// reached waits until half of the orders so far have been paid, so that others are in the middle of something.
func reached(ctx context.Context, t *testing.T, c *client.Client, n int) {
	t.Helper()
	for i := range n / 2 {
		for job, err := range c.Watch(ctx, id(i)) {
			if err != nil {
				t.Fatal(err)
			}
			if job.AtEnd() || job.Steps[1].State == makegood.StepDone {
				break
			}
		}
	}
}

// freeAddr returns an address on which nobody listens, so that an engine can come back to it.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
