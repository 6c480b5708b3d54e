package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// flushesOf counts, by strace, how often a program and all its processes flush for a job: the difference of two
// runs, one of which does fifty jobs more. So the birth of a database, and jobs that warm up, are not in it.
func flushesOf(ctx context.Context, r runner) (string, error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return "not counted, there is no strace", nil
	}
	const few, more = 20, 50
	first, err := flushes(ctx, r, few)
	if err != nil {
		return "", err
	}
	second, err := flushes(ctx, r, few+more)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.1f", float64(second-first)/more), nil
}

// flushes counts the calls of a run of so many jobs.
func flushes(ctx context.Context, r runner, jobs int) (int, error) {
	file, err := filepath.Abs(filepath.Join(built, "strace.txt"))
	if err != nil {
		return 0, err
	}
	traced := runner{name: "strace of " + r.name, command: slices.Clone(r.command)}
	for i, word := range traced.command {
		switch word {
		case "-jobs":
			traced.command[i+1] = strconv.Itoa(jobs)
		case "-test.benchtime":
			traced.command[i+1] = strconv.Itoa(jobs) + "x"
		}
	}
	traced.dir = r.dir
	traced.command = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-c", "-e", "trace=fsync,fdatasync", "-o", file}, traced.command...)
	if _, err := output(ctx, traced); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	return total(string(text)), err
}

// total is the number of calls in the summary of strace.
func total(summary string) int {
	sum := 0
	for line := range strings.Lines(summary) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[len(fields)-1] == "total" {
			continue
		}
		if n, err := strconv.Atoi(fields[3]); err == nil {
			sum += n
		}
	}
	return sum
}
