package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// lookEvery is how often dev looks at its workflow files. It reads a change only when two looks have seen it, so that
// no file is read half written: half a file may be valid.
const lookEvery = 500 * time.Millisecond

// reloader makes current what changes in a folder of workflow files. Jobs that are there keep their definitions.
//
// It looks at times and sizes; that needs no library, and works on every file system.
type reloader struct {
	folder         string
	every          time.Duration
	agents         []workflowfile.Named
	define         func(context.Context, *workflowfile.Compiled) error
	stdout, stderr io.Writer
	// read is the look of the folder when its files were read, and last that of the look before.
	read, last string
	// current is the current version of each workflow: its definition, and its schedules, which are no part of that.
	current map[string]loaded
}

// loaded distinguishes two states of a workflow.
type loaded struct{ definition, schedules string }

func loadedOf(c *workflowfile.Compiled) loaded {
	return loaded{c.Hash, fmt.Sprintf("%+v", c.Schedules)}
}

// watch looks until ctx ends.
func (r *reloader) watch(ctx context.Context) {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.look(ctx)
		}
	}
}

// look reads the files if they have changed, and no more since the last look.
func (r *reloader) look(ctx context.Context) {
	now := lookOf(r.folder)
	settled := now == r.last
	r.last = now
	if settled && now != r.read {
		r.read = now
		r.reload(ctx)
	}
}

// lookOf distinguishes two states of a folder: its workflow files, with their sizes and times.
func lookOf(folder string) string {
	var text strings.Builder
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !workflowfile.IsFile(name) {
			return err
		}
		info, err := os.Stat(folder + string(os.PathSeparator) + name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went as we looked; the next look says so
		}
		if err == nil {
			fmt.Fprintf(&text, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

// reload makes new and valid workflows current, and prints the errors of the others.
func (r *reloader) reload(ctx context.Context) {
	files, err := workflowfile.ReadAll(os.DirFS(r.folder), r.folder, workflowfile.WithAgents(r.agents...))
	there := map[string]bool{}
	for _, f := range files {
		there[f.Compiled.Workflow.Name] = true
		if defineErr := r.renew(ctx, f); defineErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", f.Name, defineErr))
		}
	}
	if err != nil {
		fmt.Fprintln(r.stderr, err)
		if !errors.Is(err, embedded.ErrHalfDefined) {
			fmt.Fprintln(r.stderr, "where a file is wrong, the definitions that were current stay current")
		}
		return
	}
	warnAbsent(r.stderr, files)
	for _, name := range slices.Sorted(maps.Keys(r.current)) {
		if !there[name] {
			delete(r.current, name)
			fmt.Fprintf(r.stderr, "workflow %s: its file is gone; until dev is started again, jobs can be submitted to it as it was\n", name)
		}
	}
}

// renew makes a file that was read current, unless it is.
func (r *reloader) renew(ctx context.Context, f workflowfile.File) error {
	name := f.Compiled.Workflow.Name
	was, now := r.current[name], loadedOf(f.Compiled)
	if was == now {
		return nil
	}
	warn(r.stderr, f.Compiled)
	if err := r.define(ctx, f.Compiled); err != nil {
		return err
	}
	r.current[name] = now
	if was.definition == now.definition {
		fmt.Fprintf(r.stdout, "workflow %s, from %s: %s now\n", name, f.Name, count(len(f.Compiled.Schedules), "schedule"))
		return nil
	}
	fmt.Fprintf(r.stdout, "workflow %s, %s, from %s: current now, for new jobs\n", name, count(len(f.Compiled.Workflow.Steps), "step"), f.Name)
	return nil
}
