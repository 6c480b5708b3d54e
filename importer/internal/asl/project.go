package asl

import (
	"bytes"
	_ "embed" // for the templates
	"go/format"
	"slices"
	"text/template"

	"github.com/makegood-dev/makegood"
)

//go:embed project.go.tmpl
var projectCode string

//go:embed project_test.go.tmpl
var projectTest string

// File is one file of an imported project, by its path from the project's folder, with slashes.
type File struct {
	Name string
	Text []byte
}

// Files are those of a project of this name (a limits.ProjectName) that the definition decides: the workflow with its
// report, the agents, and a test that runs them.
func (i *Imported) Files(project string) ([]File, error) {
	agents, err := i.Code(project)
	if err != nil {
		return nil, err
	}
	about := map[string]any{
		"Name": project, "Workflow": i.Workflow, "HTTP": i.uses(makegood.HTTPAgent), "Secrets": i.secrets(), "Waits": i.uses(makegood.AgentWait) || i.handsOver(), "Children": i.children(), "Items": i.items,
	}
	code, err := goFile(projectCode, about)
	if err != nil {
		return nil, err
	}
	test, err := goFile(projectTest, about)
	if err != nil {
		return nil, err
	}
	files := []File{
		{"agents.go", agents},
		{project + ".go", code},
		{project + "_test.go", test},
		{"workflows/" + i.Workflow + ".import.md", []byte(i.Report.Markdown())},
		{"workflows/" + i.Workflow + ".yaml", i.YAML},
	}
	for _, of := range i.items {
		files = append(files, File{"workflows/" + of.Workflow + ".yaml", of.YAML})
	}
	return files, nil
}

func goFile(text string, about any) ([]byte, error) {
	parsed, err := template.New("project").Delims("<<", ">>").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, about); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}

func (i *Imported) uses(agent string) bool {
	return slices.ContainsFunc(i.steps, func(s *step) bool { return s.agent == agent })
}

func (i *Imported) handsOver() bool {
	return slices.ContainsFunc(i.steps, func(s *step) bool { return s.do == stubWait })
}

// secrets are the names of those that steps have in their headers.
func (i *Imported) secrets() []string {
	var all []string
	for _, s := range i.steps {
		if s.with == nil || s.agent != makegood.HTTPAgent {
			continue
		}
		for at := []*value{s.with}; len(at) > 0; at = at[1:] {
			if at[0].form == formSecret && !slices.Contains(all, at[0].text) {
				all = append(all, at[0].text)
			}
			at = append(at, at[0].parts...)
		}
	}
	return all
}
