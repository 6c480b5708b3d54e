package view

import (
	"fmt"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Definition shows a definition.
func Definition(compiled *workflowfile.Compiled) (api.Definition, error) {
	source, err := compiled.Source()
	if err != nil {
		return api.Definition{}, fmt.Errorf("show a definition: %w", err)
	}
	return api.Definition{Name: compiled.Workflow.Name, Definition: compiled.Hash, Source: string(source), Workflow: compiled.Workflow}, nil
}
