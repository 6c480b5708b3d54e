package command

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// sampling is a real makegood dev in an empty folder.
type sampling struct {
	process *exec.Cmd
	// said is what it printed until it named the last of the three commands.
	said string
	url  string
}

// startSample starts one with these flags, and reads until it has said what there is to say.
func startSample(t *testing.T, dir string, flags ...string) *sampling {
	t.Helper()
	s := &sampling{process: exec.CommandContext(t.Context(), os.Args[0], append([]string{"dev", "--addr", "127.0.0.1:0"}, flags...)...)}
	s.process.Dir = dir
	s.process.Env = append(os.Environ(), asCommand+"=1", "DISPLAY=", "WAYLAND_DISPLAY=")
	stdout, err := s.process.StdoutPipe()
	must(t, err)
	must(t, s.process.Start())
	t.Cleanup(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	})
	s.read(t, bufio.NewReader(stdout))
	return s
}

func (s *sampling) read(t *testing.T, stdout *bufio.Reader) {
	t.Helper()
	for !strings.Contains(s.said, " new trips") {
		line, err := stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after\n%s", err, s.said)
		}
		s.said += line
	}
	first, _, _ := strings.Cut(s.said, "\n")
	s.url = strings.TrimPrefix(first, "makegood serves ")
}

// stop ends it as a person does, and wants that it went well.
func (s *sampling) stop(t *testing.T) {
	t.Helper()
	must(t, s.process.Process.Signal(syscall.SIGTERM))
	must(t, s.process.Wait())
}

// typed returns the commands that it named, without the name of the program.
func (s *sampling) typed() []string {
	var lines []string
	for line := range strings.Lines(s.said) {
		if line, is := strings.CutPrefix(line, "  makegood "); is {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Whoever has nothing sees an order go well, and taken back, by the commands that are named.
func TestTheSampleRunsByTheCommandsThatItNames(t *testing.T) {
	s := startSample(t, t.TempDir(), "--sample")
	typed := s.typed()
	if len(typed) != 3 {
		t.Fatalf("got the commands %q", typed)
	}
	wants(t, 0, "o-1  order  Processed", words(typed[0])...)
	wants(t, 0, "o-1  order  Und", words(typed[1])...)
	wants(t, codeOtherwise, "o-1  order  Undone: the customer called", "watch", "o-1", "--addr", s.url)
	folder := filepath.Dir(filepath.Dir(strings.Fields(s.said[strings.Index(s.said, "from "):])[1]))
	s.stop(t)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s: got %v, want that it is gone", folder, err)
	}
}

func TestANamedSampleKeepsItsJobs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shop")
	s := startSample(t, t.TempDir(), "--sample="+folder)
	wants(t, 0, "o-1  order  Processed", words(s.typed()[0])...)
	s.stop(t)
	s = startSample(t, t.TempDir(), "--sample="+folder)
	wants(t, 0, "o-1  order  Processed", "get", "o-1", "--addr", s.url)
}

// Of a folder of somebody else's nothing is touched, and a sample takes no other's workflows.
func TestASampleThatCannotBeIsRefused(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "thesis.txt"), nil, 0o600))
	wants(t, codeUsage, "thesis.txt is in it", "dev", "--sample="+folder)
	wants(t, codeUsage, "[sample workflows]", "dev", "--sample", "--workflows", folder)
	wants(t, codeUsage, "[data sample]", "dev", "--sample", "--data", folder)
	wants(t, codeUsage, "takes flags only", "dev", "--sample", folder)
}

// Where there is no desktop it serves all the same, and says what to open.
func TestAPageThatCannotBeOpenedIsNamed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("name: x\nsteps: [{name: a, agent: deaf}]\n"), 0o600))
	process := exec.CommandContext(t.Context(), os.Args[0], "dev", "--addr", "127.0.0.1:0", "--workflows", dir, "--open")
	process.Env = append(os.Environ(), asCommand+"=1", "DISPLAY=", "WAYLAND_DISPLAY=:0", "PATH=")
	stdout, err := process.StdoutPipe()
	must(t, err)
	must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	said, reader := "", bufio.NewReader(stdout)
	for !strings.Contains(said, "open http://127.0.0.1:") {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after\n%s", err, said)
		}
		said += line
	}
}

func TestEachDesktopHasItsOwnWayToOpenAPage(t *testing.T) {
	for _, row := range []struct {
		system, display string
		want            []string
	}{
		{"linux", "", nil},
		{"linux", ":0", []string{"xdg-open"}},
		{"freebsd", ":0", []string{"xdg-open"}},
		{"darwin", "", []string{"open"}},
		{"windows", "", []string{"rundll32", "url.dll,FileProtocolHandler"}},
	} {
		if got := browserFor(row.system, func(string) string { return row.display }); !slices.Equal(got, row.want) {
			t.Errorf("%s with display %q: got %q, want %q", row.system, row.display, got, row.want)
		}
	}
}
