package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/limits"
)

// parseOutside reads --outside: names of agents in other processes, each with the file of its token, if it has one.
// It also returns the linked agents that stay here.
func parseOutside(given []string, linked []agent.Handler) (all []embedded.Outside, here []agent.Handler, err error) {
	var names []string
	var wrong []error
	for _, text := range given {
		name, file, hasToken := strings.Cut(text, "=")
		names = append(names, name)
		o := embedded.Outside{Name: name}
		if hasToken {
			token, err := readToken(file)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("--outside %s: %w", name, err))
			}
			o.Token = token
		}
		all = append(all, o)
	}
	for _, h := range linked {
		if !slices.Contains(names, h.Name()) {
			here = append(here, h)
		}
	}
	if err := agentrun.CheckOutside(names, here); err != nil {
		wrong = append(wrong, fmt.Errorf("--outside: %w", err))
	}
	return all, here, errors.Join(wrong...)
}

// readToken reads a token from a file, without the white space around it.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return "", fmt.Errorf("the token: %s is empty", file)
	case len(text) > limits.MaxAgentTokenBytes:
		return "", fmt.Errorf("the token in %s has %d bytes, the limit is %d", file, len(text), limits.MaxAgentTokenBytes)
	}
	return string(text), nil
}
