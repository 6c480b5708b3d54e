package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// notRunByANewcomer are the blocks of the tutorial that no test can run, by their first command, and why.
var notRunByANewcomer = map[string]string{
	"git clone https://github.com/makegood-dev/makegood": "it needs the network: the checkout that is tested stands in for the clone, and the rest of the block is run",
	"make deploy": "it needs an account of AWS; make e2e deploys a project to MiniStack",
}

// asksTheEngine are the commands of the pages that go to 127.0.0.1:4777, where the test has another port.
var asksTheEngine = regexp.MustCompile(`\bbin/trips (dev|submit|get|watch|errors|list|complete|resubmit|undo)\b`)

// The tutorial is followed in a clean folder, outside of the repository, as a newcomer does: what is to be typed is typed
// into one shell, what is to be written or changed is, and each command prints what is shown.
func TestTheTutorialGoesAsItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	startNewcomer(t).goesBy("docs/tutorial.md", 15)
}

// goesBy does what a page says, block by block: it writes the workflow, changes files, and types the commands.
func (n *newcomer) goesBy(page string, blocks int) {
	n.t.Helper()
	parts := blocksInOrder(read(n.t, page))
	if len(parts) < blocks {
		n.t.Fatalf("%s: got %d blocks, want at least %d", page, len(parts), blocks)
	}
	for _, part := range parts {
		switch part.language {
		case "yaml":
			n.write("trips/workflows/weekend.yaml", part.text)
		case "diff":
			n.change(part.text)
		case "console":
			n.follow(commandsOf(part.text))
		default:
			n.t.Errorf("nobody knows what to do with a block of %q:\n%s", part.language, part.text)
		}
	}
}

// block is a fenced block.
type block struct{ language, text string }

func blocksInOrder(text string) []block {
	var all []block
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// newcomer sits at a shell in a folder that holds nothing but a checkout.
type newcomer struct {
	t    *testing.T
	dir  string
	port string
	keys io.Writer
	// screen is what the shell prints, both of its streams.
	screen *bufio.Reader
}

// doneWord ends what a command prints; nothing of ours prints it.
const doneWord = "=makegood-tutorial-done="

func startNewcomer(t *testing.T) *newcomer {
	t.Helper()
	n := &newcomer{t: t, dir: t.TempDir(), port: freePort(t)}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(checkout, filepath.Join(n.dir, "makegood")); err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(n.dir, "programs")
	// Not t.Context(): that ends before the shell could end what it has started.
	shell := exec.CommandContext(context.WithoutCancel(t.Context()), "sh")
	shell.Dir = n.dir
	shell.Env = append(os.Environ(), "GOBIN="+programs, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "CGO_ENABLED=0", "MAKEGOOD_STACK=", "MAKEFLAGS=", "MAKELEVEL=")
	keys, keysErr := shell.StdinPipe()
	screen, screenErr := shell.StdoutPipe()
	if keysErr != nil || screenErr != nil || shell.Start() != nil {
		t.Fatal("no shell could be started", keysErr, screenErr)
	}
	t.Cleanup(func() {
		_, _ = io.WriteString(keys, "kill -9 $! 2>/dev/null\nexit\n")
		_ = keys.Close()
		_ = shell.Wait()
	})
	n.keys, n.screen = keys, bufio.NewReader(screen)
	return n
}

// follow types the commands of a block.
func (n *newcomer) follow(commands []shown) {
	n.t.Helper()
	if strings.HasPrefix(commands[0].command, "git clone ") {
		commands = commands[1:]
	}
	if notRunByANewcomer[commands[0].command] != "" {
		return
	}
	for _, c := range commands {
		n.wants(c)
	}
}

// wants types a command, and wants it to print what is shown. What the engine writes comes when it comes, so its log is
// looked at until it has it.
func (n *newcomer) wants(c shown) {
	n.t.Helper()
	const patience = 2 * time.Minute
	got, want := "", masked(c.prints)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		got = masked(n.typed(c.command))
		if got == want || !strings.HasPrefix(c.command, "tail ") || time.Now().After(deadline) {
			break
		}
	}
	if got != want {
		n.t.Fatalf("$ %s\nprints\n%sand the tutorial shows\n%s", c.command, got, want)
	}
	if strings.HasSuffix(c.command, "&") {
		n.awaitEngine(patience)
	}
}

// typed types a command and returns what it prints. Its exit code does not matter: what it prints does.
func (n *newcomer) typed(command string) string {
	n.t.Helper()
	line := asksTheEngine.ReplaceAllString(command, "$0 --addr 127.0.0.1:"+n.port)
	if _, err := fmt.Fprintf(n.keys, "{ %s\n} 2>&1; echo %s\n", line, doneWord); err != nil {
		n.t.Fatal(err)
	}
	printed := ""
	for {
		text, err := n.screen.ReadString('\n')
		if err != nil {
			n.t.Fatalf("$ %s\nthe shell ended: %v\n%s", command, err, printed)
		}
		if before, done := strings.CutSuffix(text, doneWord+"\n"); done {
			return printed + before
		}
		printed += text
	}
}

// awaitEngine waits until the engine answers, as whoever reads what it printed has.
func (n *newcomer) awaitEngine(patience time.Duration) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+n.port)
		if err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.t.Fatalf("the engine does not answer: %s", n.typed("cat dev.log"))
}

func (n *newcomer) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// change does what a block of diff shows: lines with a minus, between those that stay, become those with a plus.
func (n *newcomer) change(diff string) {
	n.t.Helper()
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	name, is := strings.CutPrefix(lines[0], "--- ")
	if !is {
		n.t.Fatalf("this names no file:\n%s", diff)
	}
	side := func(sign string) string {
		kept := slices.DeleteFunc(slices.Clone(lines[1:]), func(line string) bool { return line[:1] != " " && line[:1] != sign })
		for i := range kept {
			kept[i] = kept[i][1:]
		}
		return strings.Join(kept, "\n") + "\n"
	}
	text, err := os.ReadFile(filepath.Join(n.dir, "trips", name))
	if err != nil {
		n.t.Fatal(err)
	}
	if strings.Count(string(text), side("-")) != 1 {
		n.t.Fatalf("%s has not, or more than once:\n%s", name, side("-"))
	}
	n.write(filepath.Join("trips", name), strings.Replace(string(text), side("-"), side("+"), 1))
}
