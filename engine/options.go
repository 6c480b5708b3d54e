package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
)

// check returns all invalid options at once, before the engine starts.
func (o Options) check() error {
	return errors.Join(checkDir(o.Dir), checkWorkflows(o.Workflows), checkAgents(o.Agents), checkConcurrency(o), checkOutside(o), checkNamed("Options.Notify.Listeners", o.Notify.Listeners), checkNamed("Options.Notify.Questions", o.Notify.Questions), checkAnswerURL(o.Notify.AnswerURL), checkAlerts(o))
}

// checkAnswerURL refuses a URL that cannot be the prefix of a link.
func checkAnswerURL(text string) error {
	if text == "" {
		return nil
	}
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("Options.Notify.AnswerURL: %q is no URL that a link can begin with: want one such as https://shop.example/answers", text)
	}
	return nil
}

// hosts returns the names under which requests may reach the handler.
func (o Options) hosts() []string {
	if u, err := url.Parse(o.Notify.AnswerURL); err == nil && u.Hostname() != "" {
		return append(slices.Clone(o.Hosts), u.Hostname())
	}
	return o.Hosts
}

// link returns the function that makes the links of questions; nil: there are no links.
func (o Options) link() func(token string) string {
	if o.Notify.AnswerURL == "" {
		return nil
	}
	return func(token string) string {
		return strings.TrimSuffix(o.Notify.AnswerURL, "/") + httpapi.LinkPath(token)
	}
}

func checkDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("Options.Dir: %s is a file, want a folder, or a path where one can be made", dir)
	}
	return nil
}

func checkWorkflows(files fs.FS) error {
	if files == nil {
		return nil
	}
	if _, err := fs.Stat(files, "."); err != nil {
		return fmt.Errorf("Options.Workflows: the files cannot be read: %w", err)
	}
	return nil
}

func checkAgents(agents []agent.Handler) error {
	if err := agentrun.Check(agents); err != nil {
		return fmt.Errorf("Options.Agents: %w", err)
	}
	return nil
}

func checkConcurrency(o Options) error {
	var wrong []error
	if all := o.Concurrency.All; all < 0 || all > embedded.MaxConcurrency {
		wrong = append(wrong, fmt.Errorf("Options.Concurrency: %d attempts of all agents, want 1 to %d, or 0: as many as of each", all, embedded.MaxConcurrency))
	}
	if checkAgents(o.Agents) != nil {
		return errors.Join(wrong...) // Not all of them have names.
	}
	here := []string{makegood.HTTPAgent}
	for _, a := range o.Agents {
		here = append(here, a.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(o.Concurrency.Agents)) {
		if n := o.Concurrency.Agents[name]; n < 1 || n > embedded.MaxConcurrency {
			wrong = append(wrong, fmt.Errorf("Options.Concurrency: %d attempts of agent %q, want 1 to %d", n, name, embedded.MaxConcurrency))
		}
		if !slices.Contains(here, name) {
			wrong = append(wrong, fmt.Errorf("Options.Concurrency: no agent %q is among Options.Agents; there are %s", name, strings.Join(here, ", ")))
		}
	}
	return errors.Join(wrong...)
}

func checkOutside(o Options) error {
	var names []string
	var wrong []error
	for _, a := range o.Outside {
		names = append(names, a.Name)
		if len(a.Token) > limits.MaxAgentTokenBytes {
			wrong = append(wrong, fmt.Errorf("Options.Outside: the token of %q has %d bytes, the limit is %d", a.Name, len(a.Token), limits.MaxAgentTokenBytes))
		}
	}
	if err := agentrun.CheckOutside(names, o.Agents); err != nil {
		wrong = append(wrong, fmt.Errorf("Options.Outside: %w", err))
	}
	return errors.Join(wrong...)
}

// checkNamed refuses receivers that are nil or have an invalid name.
func checkNamed[T any](option string, told map[string]func(context.Context, T) error) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if err := limits.ReplyName.Check(name); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", option, err))
		}
		if told[name] == nil {
			wrong = append(wrong, fmt.Errorf("%s: %q is nil", option, name))
		}
	}
	return errors.Join(wrong...)
}
