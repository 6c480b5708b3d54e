package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
)

const (
	// maxMany is how many jobs one command takes: their ids are held in memory, so that it changes exactly the jobs that
	// the user confirmed.
	maxMany = 1_000_000
	// maxIDLine is how long a line of ids may be: one that list --json prints has all its jobs on it.
	maxIDLine = 64 << 20
)

// target is a job for a verb. State is its state in a list; empty: it was not read.
type target struct {
	id    string
	state makegood.ProcessState
}

// targets returns the selected jobs, each once. After an error no request was made of any job.
func (o *manyOptions) targets(cmd *cobra.Command, c *client.Client, args []string) ([]target, error) {
	found := &gathered{seen: map[string]bool{}}
	switch {
	case len(args) == 0:
		return o.found(cmd, c, found)
	case args[0] == "-":
		if err := readIDs(cmd.InOrStdin(), found); err != nil {
			return nil, exit(codeUsage, fmt.Errorf("standard input: %w", err))
		}
		return found.all, nil
	}
	for _, id := range args {
		if err := found.add(id, ""); err != nil {
			return nil, exit(codeUsage, err)
		}
	}
	return found.all, nil
}

// found reads what a filter finds, to its end, before anything is done.
func (o *manyOptions) found(cmd *cobra.Command, c *client.Client, found *gathered) ([]target, error) {
	filter, err := o.filter.read()
	if err != nil {
		return nil, exit(codeUsage, err)
	}
	for cursor := ""; ; {
		page, err := c.Page(cmd.Context(), filter, cursor)
		if err != nil {
			return nil, failed(cmd, err)
		}
		if page.Scanned && cursor == "" && o.stackName(cmd) != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "no index leads to such jobs: the whole table is read, page by page")
		}
		for _, job := range page.Jobs {
			if err := found.add(job.ID, job.ProcessState); err != nil {
				return nil, exit(codeUsage, fmt.Errorf("%w; narrow the filter", err))
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return found.all, nil
		}
	}
}

// gathered are jobs, each once.
type gathered struct {
	all  []target
	seen map[string]bool
}

func (g *gathered) add(id string, state makegood.ProcessState) error {
	if err := domain.CheckJobID(id); err != nil {
		return err
	}
	if g.seen[id] {
		return nil
	}
	if len(g.all) == maxMany {
		return fmt.Errorf("more than %s, which is what one command takes", thousands(maxMany, "job"))
	}
	g.seen[id] = true
	g.all = append(g.all, target{id, state})
	return nil
}

// readIDs reads ids, one a line; or JSON: a job of a list, the output of a verb for a job, or the output of list
// --json, which has its jobs in it. Blank lines are skipped. The error names the line.
func readIDs(from io.Reader, found *gathered) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxIDLine)
	number := 0
	for lines.Scan() {
		number++
		ids, err := idsOf(bytes.TrimSpace(lines.Bytes()))
		for _, id := range ids {
			if err = found.add(id, ""); err != nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	return nil
}

// idsOf returns the ids on a line.
func idsOf(line []byte) ([]string, error) {
	if len(line) == 0 {
		return nil, nil
	}
	if line[0] != '{' {
		return []string{string(line)}, nil
	}
	var said struct {
		ID      string          `json:"id"`
		Job     string          `json:"job"`
		Summary json.RawMessage `json:"summary"`
		Jobs    []struct {
			ID string `json:"id"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	var ids []string
	for _, job := range said.Jobs {
		ids = append(ids, job.ID)
	}
	switch {
	case said.ID != "":
		return append(ids, said.ID), nil
	case said.Job != "":
		return append(ids, said.Job), nil
	case said.Jobs == nil && said.Summary == nil:
		return nil, errors.New("an object with neither id nor jobs in it")
	}
	return ids, nil
}
