package docs

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/address"
)

// notRunHere are the blocks of commands in these pages that no test can run, by their first command, and why.
var notRunHere = map[string]string{
	"bin/makegood dev --sample --open":                                  "it opens a browser; the tests of the command run the sample, and those of lab/e2e/browser its page",
	"git clone https://github.com/makegood-dev/makegood && cd makegood": "it needs the network; TestTheFirstProgramPrintsWhatTheREADMEShows runs the program that follows",
	"make demo":   "TestTheDemoPrintsWhatTheREADMEShows runs it",
	"make deploy": "it needs an account of AWS; make e2e runs the same against MiniStack",
}

// typedPages have commands that a reader types one after the other, page after page, into one shell.
var typedPages = []string{"README.md", "docs/command-line.md", "docs/many-jobs.md", "docs/versions.md"}

// varies are the rules by which what differs from run to run is made the same.
var varies = []struct{ find, say string }{
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
	{`\d+\.\d s\b`, "SECONDS"},
	{`\b[0-9a-f]{32}\b`, "DEFINITION"},
	{`last asked by \S+`, "last asked by SOMEBODY"},
	{`by \S+@[^\s:,]+`, "by SOMEBODY"},
	// Faults strike by chance, and so do the retries that follow.
	{`attempt \d+(, \d+ failures?)?(; last error: .*)?`, "attempt N"},
	{`, \d+ failures?\b`, ", failures"},
	{`(?m)^(o-2 .*Undone +)\d+ +`, "${1}N "},
	{`"number":\d+`, `"number":N`},
	{`(?m)^ *(attempts made|of them retries|steps undone|faults of the shop|duplicates refused by the shop|forward calls refused after their undo|seconds) +[\d.]+$`, "$1 N"},
}

func masked(text string) string {
	for _, rule := range varies {
		text = regexp.MustCompile(rule.find).ReplaceAllString(text, rule.say)
	}
	return text
}

// shown is a command of a block, and what the README says that it prints.
type shown struct{ command, prints string }

func commandsOf(block string) []shown {
	var all []shown
	for line := range strings.Lines(block) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			command, _, _ = strings.Cut(command, " #")
			all = append(all, shown{command: strings.TrimSpace(command)})
			continue
		}
		all[len(all)-1].prints += line
	}
	return all
}

// The blocks that can be run are run one after the other, as a reader would, and print what the README shows: all
// of it, and no more.
func TestTheREADMEsCommandsPrintWhatItShows(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	s := newConsole(t)
	ran := 0
	var found []string
	for _, page := range typedPages {
		found = append(found, blocks(read(t, page), "console")...)
	}
	for _, block := range found {
		commands := commandsOf(block)
		if notRunHere[commands[0].command] != "" {
			continue
		}
		for _, c := range commands {
			if c.command == "make build" {
				continue // newConsole has done it
			}
			known := exec.CommandContext(t.Context(), "sh", "-c", "command -v "+strings.Fields(c.command)[0]) // a program, or a word of the shell
			if err := known.Run(); err != nil && !strings.HasPrefix(c.command, "bin/") {
				t.Logf("NOT RUN, for it is not here: %s", c.command)
				continue
			}
			ran++
			if got, want := masked(s.run(c.command)), masked(c.prints); got != want {
				t.Errorf("$ %s\nprints\n%sand the page shows\n%s", c.command, got, want)
			}
		}
	}
	if ran < 22 {
		t.Errorf("%d commands were run, want those of four blocks", ran)
	}
}

// console is a folder like the repository's, as a shell sees it: the same commands, at ports that are free.
type console struct {
	t         *testing.T
	dir       string
	shop, api string
}

func newConsole(t *testing.T) *console {
	t.Helper()
	s := &console{t: t, dir: t.TempDir(), shop: freePort(t), api: freePort(t)}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "built")+string(filepath.Separator), "./cmd/makegood", "./examples/shop")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	order := strings.ReplaceAll(read(t, "workflows/order/order.yaml"), "4790", s.shop)
	order = strings.ReplaceAll(order, "for: 10s", "attempts: 10") // A slow machine gives no step up.
	s.write("workflows/order/order.yaml", order, 0o644)
	s.write("examples/orders/orders.jsonl", read(t, "examples/orders/orders.jsonl"), 0o644)
	s.write("bin/shop", "#!/bin/sh\nexec built/shop --addr 127.0.0.1:"+s.shop+" \"$@\"\n", 0o755)
	s.write("bin/makegood", "#!/bin/sh\ncase $1 in run|validate) exec built/makegood \"$@\";; esac\nexec built/makegood \"$@\" --addr 127.0.0.1:"+s.api+"\n", 0o755)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *console) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// run returns what a command prints. One that ends in & is left running until the test ends, once it serves.
func (s *console) run(command string) string {
	s.t.Helper()
	command = strings.ReplaceAll(command, "4777", s.api)
	line, behind := strings.CutSuffix(command, " &")
	shell := exec.CommandContext(s.t.Context(), "sh", "-c", "exec "+line)
	if !behind {
		shell = exec.CommandContext(s.t.Context(), "sh", "-c", line)
	}
	shell.Dir = s.dir
	shell.Env = append(os.Environ(), "MAKEGOOD_SHOP=http://127.0.0.1:"+s.shop, "MAKEGOOD_STACK=")
	if behind {
		s.leave(shell)
		return ""
	}
	out, err := shell.Output()
	if ended, is := err.(*exec.ExitError); err != nil && (!is || ended.ExitCode() != 2) {
		s.t.Errorf("$ %s: %v\n%s", command, err, ended.Stderr)
	}
	return strings.ReplaceAll(string(out)+newline(out), s.shop, "4790")
}

// newline ends what does not end a line by itself.
func newline(out []byte) string {
	if len(out) == 0 || out[len(out)-1] == '\n' {
		return ""
	}
	return "\n"
}

// leave starts a server, and waits until it answers.
func (s *console) leave(server *exec.Cmd) {
	s.t.Helper()
	address := "127.0.0.1:" + s.api
	if strings.Contains(server.String(), "bin/shop") {
		address = "127.0.0.1:" + s.shop
	}
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	const openWithin = 2 * time.Minute
	ctx, cancel := context.WithTimeout(s.t.Context(), openWithin)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%v does not answer at %s: %v", server, address, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A second run finds the job of the first, and undoes nothing again.
func TestTheFirstProgramPrintsWhatTheREADMEShows(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./examples/first")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	want := commandsOf(blocks(read(t, "README.md"), "console")[0])[1].prints
	for range 2 {
		first := exec.CommandContext(t.Context(), filepath.Join(dir, "first"))
		first.Dir = dir
		if got, err := first.Output(); err != nil || string(got) != want {
			t.Errorf("got %v, and it prints\n%swant\n%s", err, got, want)
		}
		want = want[strings.Index(want, "\n")+1:]
	}
}

// The demo's report, as the README shows it.
func TestTheDemoPrintsWhatTheREADMEShows(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	demo := exec.CommandContext(t.Context(), "go", "run", "./examples/demo")
	demo.Dir = "../.."
	demo.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := demo.Output()
	if err != nil {
		t.Errorf("make demo: %v", err)
	}
	wantShown(t, "README.md", "kills survived", string(out))
}

// What CrashEverywhere finds in a shop that ignores its keys, as docs/testing.md shows it.
func TestTheCrashThatIsShownIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	crash := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestWhatGoesWrongIsFoundAndTold$/^a_charge_that_ignores_its_key$", "./workflows/order")
	crash.Dir = "../.."
	crash.Env = append(os.Environ(), "CGO_ENABLED=0", "MAKEGOOD_PLANTED=1")
	out, _ := crash.Output() // it fails: that is the point
	// A test's log is indented, and begins with where it is from.
	text := regexp.MustCompile(`(?m)^ *order_test\.go:\d+: |^ {12}`).ReplaceAllString(string(out), "")
	wantShown(t, "docs/testing.md", "faults", text)
}

// wantShown wants the block of a page that says a phrase to be part of what was printed.
func wantShown(t *testing.T, page, phrase, printed string) {
	t.Helper()
	for _, block := range blocks(read(t, page), "") {
		if !strings.Contains(block, phrase) {
			continue
		}
		if !strings.Contains(masked(printed), masked(block)) {
			t.Errorf("%s shows\n%s\nand it prints\n%s", page, block, printed)
		}
		return
	}
	t.Errorf("%s shows nothing that says %q", page, phrase)
}
