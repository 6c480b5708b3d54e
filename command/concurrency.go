package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// addConcurrency adds --concurrency, for parseConcurrency.
func addConcurrency(cmd *cobra.Command, given *[]string) {
	cmd.Flags().StringArrayVar(given, "concurrency", nil, fmt.Sprintf("how many attempts of an agent run at once, as `NAME=N`, 1 to %d; N alone: of all agents together. Undos are counted by themselves. Default: %d of each agent; may be repeated", embedded.MaxConcurrency, embedded.DefaultConcurrency))
}

// parseConcurrency reads --concurrency: N, which bounds all agents together, or NAME=N. It refuses an agent that does
// not run in this process: here are those that do, beside http, and outside those that run elsewhere.
func parseConcurrency(given []string, here []agent.Handler, outside []embedded.Outside) (embedded.Concurrency, error) {
	limits := embedded.Concurrency{Agents: map[string]int{}}
	var wrong []error
	for _, text := range given {
		if err := readConcurrency(text, &limits); err != nil {
			wrong = append(wrong, fmt.Errorf("--concurrency %.80s: %w", text, err))
		}
	}
	names := []string{makegood.HTTPAgent}
	for _, a := range here {
		names = append(names, a.Name())
	}
	for name := range limits.Agents {
		if slices.ContainsFunc(outside, func(o embedded.Outside) bool { return o.Name == name }) {
			wrong = append(wrong, fmt.Errorf("--concurrency %s: the agent runs in processes outside, and each process says how many of its attempts run at once (docs/limit-an-agent.md)", name))
		} else if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Errorf("--concurrency %s: no such agent runs here; there are %s", name, strings.Join(names, ", ")))
		}
	}
	return limits, errors.Join(wrong...)
}

// readConcurrency reads one limit into limits.
func readConcurrency(text string, limits *embedded.Concurrency) error {
	name, number, named := strings.Cut(text, "=")
	if !named {
		name, number = "", text
	}
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || named && name == "":
		return errors.New("want NAME=N, or N for all agents together, such as payments=3")
	case n < 1 || n > embedded.MaxConcurrency:
		return fmt.Errorf("%d attempts at once, want 1 to %d", n, embedded.MaxConcurrency)
	case limits.Agents[name] != 0 || !named && limits.All != 0:
		return errors.New("given twice")
	case named:
		limits.Agents[name] = n
	default:
		limits.All = n
	}
	return nil
}
