package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// host describes the machine and the commit, as configuration of Go's benchmark format. A rate is better the higher
// it is, and benchstat cannot know that.
func host(ctx context.Context) (string, error) {
	commit, err := commitHere(ctx)
	if err != nil {
		return "", err
	}
	flush, err := flushTime()
	if err != nil {
		return "", err
	}
	lines := []string{
		"commit: " + commit,
		"date: " + time.Now().UTC().Format("2006-01-02 15:04"),
		"go: " + runtime.Version(),
		fmt.Sprintf("machine: %d cores, %s, %s of memory, Linux %s", runtime.NumCPU(), inFile("/proc/cpuinfo", "model name"), memory(), kernel()),
		"flush: " + flush.String(),
		"Unit jobs/s better=higher",
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// commitHere names the commit that is measured, and whether the tree has changes of its own.
func commitHere(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "*.go").Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	commit := string(bytes.TrimSpace(out))
	if len(changes) > 0 {
		commit += ", changed"
	}
	return commit, nil
}

// flushTime is the median time of a hundred flushes of a page, where the engines have their files.
func flushTime() (time.Duration, error) {
	dir, err := os.MkdirTemp("", "flush-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var took []time.Duration
	for range 100 {
		begin := time.Now()
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2].Round(10 * time.Microsecond), nil
}

// busy is how much of the processors others use, in percent, over a fifth of a second.
func busy() (string, error) {
	idle, all, err := ticks()
	if err != nil {
		return "", err
	}
	time.Sleep(200 * time.Millisecond)
	idleThen, allThen, err := ticks()
	if err != nil || allThen == all {
		return "", fmt.Errorf("/proc/stat did not move on: %w", err)
	}
	return strconv.Itoa(100 - int(100*(idleThen-idle)/(allThen-all))), nil
}

// ticks are those that the processors had nothing to do, or waited for the disk, and all.
func ticks() (idle, all int64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(first)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i == 3 || i == 4 {
			idle += n
		}
		all += n
	}
	return idle, all, nil
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func memory() string {
	var kib int
	if _, err := fmt.Sscanf(inFile("/proc/meminfo", "MemTotal"), "%d kB", &kib); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
}

// inFile is the first value of a name in a file of lines NAME: VALUE.
func inFile(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
