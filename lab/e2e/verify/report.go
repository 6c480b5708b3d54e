package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// report collects what the checks say.
type report struct {
	where, commit string
	began         time.Time
	checks        []check
}

// check is one thing that was looked at.
type check struct {
	name    string
	found   []string
	err     error
	seconds float64
}

func newReport(ctx context.Context, region string, o options) *report {
	r := &report{where: "AWS, " + region, began: time.Now()}
	if o.rehearse {
		r.where = os.Getenv(standin.DeployedVariable) + ", a rehearsal: nothing here is said of AWS"
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		r.commit = strings.TrimSpace(string(out))
	}
	return r
}

// try does a check, says on the terminal how it went, and keeps it.
func (r *report) try(name string, do func() ([]string, error)) error {
	began := time.Now()
	found, err := do()
	c := check{name: name, found: found, err: err, seconds: time.Since(began).Seconds()}
	r.checks = append(r.checks, c)
	fmt.Print(c)
	return err
}

// String is the check as Markdown.
func (c check) String() string {
	verdict := "passed"
	if c.err != nil {
		verdict = "FAILED"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s: %s (%.0f s)\n\n", c.name, verdict, c.seconds)
	for _, line := range c.found {
		fmt.Fprintln(&b, line)
	}
	if c.err != nil {
		fmt.Fprintf(&b, "\n```\n%v\n```\n", c.err)
	}
	fmt.Fprintln(&b)
	return b.String()
}

func (r *report) passed() int {
	n := 0
	for _, c := range r.checks {
		if c.err == nil {
			n++
		}
	}
	return n
}

// write writes the report.
func (r *report) write(file string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Makegood on %s\n\nCommit %s, %s, %.0f minutes. %d of %d checks passed.\n\n",
		r.where, r.commit, r.began.UTC().Format(time.RFC3339), time.Since(r.began).Minutes(), r.passed(), len(r.checks))
	for _, c := range r.checks {
		b.WriteString(c.String())
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
