package view

import (
	"fmt"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Definition shows a definition as it is stored. One of a newer release is workflowfile.ErrNewer.
func Definition(stored []byte) (api.Definition, error) {
	compiled, err := workflowfile.Load(stored)
	if err != nil {
		return api.Definition{}, fmt.Errorf("show a definition: %w", err)
	}
	source, err := compiled.Source()
	if err != nil {
		return api.Definition{}, fmt.Errorf("show a definition: %w", err)
	}
	return api.Definition{Name: compiled.Workflow.Name, Definition: compiled.Hash, Source: string(source), Workflow: compiled.Workflow}, nil
}
