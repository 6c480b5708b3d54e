package command

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
)

// sizedTerminal is a terminal of so many characters and lines.
func sizedTerminal(t *testing.T, width, height uint16) (screen, person *os.File) {
	t.Helper()
	person, screen = terminal(t)
	size := [4]uint16{height, width}
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); failed != 0 {
		t.Fatal(failed)
	}
	return screen, person
}

// onScreen reads what was written to a terminal, which ends with its screen.
func onScreen(t *testing.T, screen, person *os.File) string {
	t.Helper()
	must(t, screen.Close())
	text, _ := io.ReadAll(person) // it ends with an error: nobody holds the other side
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func branchesOf(makegood.Job) *makegood.Workflow {
	return &makegood.Workflow{Name: "trip", Steps: []makegood.Step{
		{Name: "quote", Agent: "fares"}, {Name: "flight", Agent: "air", Needs: []string{"quote"}}, {Name: "hotel", Agent: "beds", Needs: []string{"quote"}},
	}}
}

func TestOnATerminalTheGraphIsDrawnAndDrawnOver(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	screen, person := sizedTerminal(t, 100, 30)
	draw := newPicture(screen, false, branchesOf)
	job := makegood.Job{ID: "t-1", Workflow: "trip", ProcessState: makegood.JobProcessing, Steps: []makegood.JobStep{
		{Name: "quote", Activity: makegood.Activity{State: makegood.StepDone}}, {Name: "flight", Activity: makegood.Activity{State: makegood.StepClaimed}}, {Name: "hotel"},
	}}
	must(t, draw(watched{Job: job}))
	job.Steps[1].State = makegood.StepDone
	must(t, draw(watched{Job: job}))
	first, second, again := strings.Cut(onScreen(t, screen, person), "\x1b[8A")
	if !again || !strings.Contains(first, "\x1b[34m◐ flight") || !strings.Contains(second, "\x1b[32m● flight") {
		t.Errorf("got\n%q\n%q\nwant flight at work in blue, then, eight lines up, done in green", first, second)
	}
}

func TestWithoutColoursATerminalShowsShapes(t *testing.T) {
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			t.Setenv("TERM", "xterm")
			t.Setenv(name, value)
			screen, person := sizedTerminal(t, 100, 30)
			must(t, newPicture(screen, false, branchesOf)(watched{Job: makegood.Job{ID: "t-1", Steps: []makegood.JobStep{{Name: "quote", Activity: makegood.Activity{State: makegood.StepDone}}}}}))
			text := onScreen(t, screen, person)
			if strings.Contains(text, "m●") || !strings.Contains(text, "● quote ╶┬▶ ○ flight") {
				t.Errorf("got %q, want shapes, and no colours", text)
			}
		})
	}
}

// What is narrower or lower than the graph shows the steps alone, each in its line.
func TestASmallTerminalShowsTheSteps(t *testing.T) {
	for _, size := range [][2]uint16{{20, 30}, {100, 5}} {
		screen, person := sizedTerminal(t, size[0], size[1])
		job := makegood.Job{ID: "t-1", Steps: []makegood.JobStep{{Name: "quote"}, {Name: "flight"}, {Name: "hotel"}}}
		must(t, newPicture(screen, false, branchesOf)(watched{Job: job}))
		text := onScreen(t, screen, person)
		if strings.Contains(text, "▶") || !strings.Contains(text, "quote") {
			t.Errorf("%d by %d: got %q", size[0], size[1], text)
		}
	}
}

// The whole of it: the command, on a terminal, of a job that waits and is answered.
func TestWatchDrawsALiveJobOnATerminal(t *testing.T) {
	_, url := waitingFor(t, "a")
	screen, person := sizedTerminal(t, 100, 30)
	root := newRoot("makegood", nil, nil)
	root.SetArgs([]string{"watch", "a", "--addr", url})
	root.SetOut(screen)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, root, io.Discard) }()
	// The picture has come before the job goes on.
	seen, part := "", make([]byte, 4096)
	for !strings.Contains(seen, "⧖") {
		n, err := person.Read(part)
		must(t, err)
		seen += string(part[:n])
	}
	c, err := client.New(url)
	must(t, err)
	job, err := c.Look(t.Context(), "a")
	must(t, err)
	_, err = c.Request(t.Context(), job.ID, api.Request{Verb: makegood.VerbCancel})
	must(t, err)
	if code := <-ended; code != codeOtherwise {
		t.Errorf("got exit code %d, want that of a job that was cancelled", code)
	}
	if text := onScreen(t, screen, person); !strings.Contains(text, "Cancelled") {
		t.Errorf("got %q, want the end", text)
	}
}
