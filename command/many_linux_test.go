package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal opens a terminal, and returns its two ends: that of whoever sits there, and that of the program.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = person.Close() })
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// On a terminal it is asked whether a filter is meant, with how many jobs it finds, and only a yes is one.
func TestOnATerminalAFilterIsAskedAbout(t *testing.T) {
	c := newCrowd(t, 3, 0)
	for _, a := range []struct {
		says string
		code int
		want int
	}{{"\n", codeUsage, 0}, {"n\n", codeUsage, 0}, {"yeah\n", codeUsage, 0}, {"y\n", 0, 3}} {
		person, program := terminal(t)
		command := exec.CommandContext(t.Context(), os.Args[0], "cancel", "--workflow", "approvals", "--addr", c.url)
		command.Env = append(os.Environ(), asCommand+"=1")
		command.Stdin, command.Stderr = program, program
		must(t, command.Start())
		said := bufio.NewReader(person)
		question, err := said.ReadString(']')
		must(t, err)
		if !strings.HasSuffix(question, "cancel 3 jobs? [y/N]") {
			t.Errorf("got the question %q", question)
		}
		_, err = person.WriteString(a.says)
		must(t, err)
		_ = command.Wait() // the code says it
		all, _ := c.most()
		if code := command.ProcessState.ExitCode(); code != a.code || all != a.want {
			t.Errorf("%q: got %d and %d jobs cancelled, want %d and %d", a.says, code, all, a.code, a.want)
		}
	}
}
