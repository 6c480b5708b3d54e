package services

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Launch starts a program, and returns the word at this place of its first output line, the first being 0: its
// address. shut kills it. Its further output is thrown away. After an error it does not run.
func Launch(cmd *exec.Cmd, word int, within time.Duration) (address string, shut func(), err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	shut = func() {
		_ = cmd.Process.Kill() // its needed output was read
		_ = cmd.Wait()
	}
	address, err = wordOf(out, word, within)
	if err != nil {
		shut()
		return "", nil, fmt.Errorf("%s did not open: %w", filepath.Base(cmd.Path), err)
	}
	return address, shut, nil
}

// wordOf reads a word of the first line, and goes on reading until the end, so that the writer is not blocked.
func wordOf(out io.Reader, word int, within time.Duration) (string, error) {
	line := make(chan string, 1)
	go func() {
		r := bufio.NewReader(out)
		text, _ := r.ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, r)
	}()
	select {
	case text := <-line:
		if fields := strings.Fields(text); len(fields) > word {
			return fields[word], nil
		}
		return "", errors.New("it did not say its address")
	case <-time.After(within):
		return "", fmt.Errorf("it printed no line within %s", within)
	}
}
