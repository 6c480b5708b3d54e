// Command events writes the saved events of the folder events, which are what SQS and the schedule hand to each
// function of template.yaml, and beside each what the function must answer and send. They are made by the code
// that reads and writes messages, so they cannot go stale: go generate writes them, and make check compares.
//
// With -sam-local it runs each function on them by sam local invoke, in Docker: make sam-local does so. It needs
// a stand-in for AWS at AWS_ENDPOINT_URL, and proves nothing about AWS itself.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

//go:generate go run .

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("events", flag.ContinueOnError)
	invoke := flags.Bool("sam-local", false, "run the functions on the saved events, in Docker; from the root of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !*invoke {
		return write(savedEvents)
	}
	if err := samLocal(ctx, os.Getenv, os.Stdout); err != nil {
		return fmt.Errorf("sam-local: %w", err)
	}
	return nil
}

// savedEvents is the folder of the saved events, seen from here: sam local invoke and its users find them at the root.
const savedEvents = "../../../events"

// write writes each case's event, and what is expected of it, into a folder.
func write(folder string) error {
	for _, c := range cases() {
		for name, content := range map[string]any{c.file(): c.event, c.wantFile(): c.want} {
			body, err := json.MarshalIndent(content, "", "  ")
			if err != nil {
				return fmt.Errorf("encode %s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), append(body, '\n'), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// invoker runs one function, named as in template.yaml, on an event, and returns its answer.
type invoker func(ctx context.Context, function string, event []byte, variables map[string]string) (string, error)

// runCases runs all cases from the files of a folder, each on a table and queues of its own, and compares.
func runCases(ctx context.Context, folder string, w *world, invoke invoker, out io.Writer) error {
	var wrong []error
	for _, c := range cases() {
		if err := w.run(ctx, folder, c, invoke); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", c.file(), err))
			continue
		}
		fmt.Fprintf(out, "ok %s: %s answered %s, and sent %d messages\n", c.file(), c.function, c.want.Answer, len(c.want.Sends))
	}
	return errors.Join(wrong...)
}

// saved reads what was written for a case.
func saved(folder string, c savedCase) (event []byte, want outcome, err error) {
	if event, err = os.ReadFile(filepath.Join(folder, c.file())); err != nil {
		return nil, outcome{}, err
	}
	body, err := os.ReadFile(filepath.Join(folder, c.wantFile()))
	if err != nil {
		return nil, outcome{}, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil {
		return nil, outcome{}, fmt.Errorf("%s: %w", c.wantFile(), err)
	}
	return event, want, nil
}
