package command

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// On a terminal, and where there is nothing to serve, the sample is offered; Enter takes it. Whoever says no gets what they
// would have got without a terminal: of this program, which links nothing, that there is no folder.
func TestOnATerminalTheSampleIsOffered(t *testing.T) {
	for says, wants := range map[string]string{
		"\n":    " new trips",
		"yes\n": " new trips",
		"n\n":   "--workflows names the folder",
		"\x04":  "--workflows names the folder",
	} {
		person, program := terminal(t)
		process := exec.CommandContext(t.Context(), os.Args[0], "dev", "--addr", "127.0.0.1:0")
		process.Dir = t.TempDir()
		process.Env = append(os.Environ(), asCommand+"=1", "DISPLAY=", "WAYLAND_DISPLAY=")
		process.Stdin, process.Stdout, process.Stderr = program, program, program
		must(t, process.Start())
		defer func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		}()
		screen := bufio.NewReader(person)
		question, err := screen.ReadString(']')
		must(t, err)
		if !strings.HasSuffix(question, "[Y/n]") {
			t.Errorf("got the question %q", question)
		}
		_, err = person.WriteString(says)
		must(t, err)
		said := ""
		for !strings.Contains(said, wants) {
			line, err := screen.ReadString('\n')
			if err != nil {
				t.Fatalf("%q: %v after\n%s", says, err, said)
			}
			said += line
		}
	}
}
