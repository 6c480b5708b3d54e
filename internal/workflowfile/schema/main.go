// Command schema writes docs/workflow.schema.json, the JSON Schema of workflow files, for editors, and the same as a
// page. Both follow from the table of fields in internal/workflowfile.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

//go:generate go run .

// file is where the schema is, from this folder.
const file = "../../../docs/workflow.schema.json"

func main() {
	schema := workflowfile.SchemaOfFiles()
	text, err := write(schema)
	if err == nil {
		err = errors.Join(os.WriteFile(file, text, 0o644), os.WriteFile(referenceFile, reference(schema), 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func write(s *workflowfile.Schema) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(s)
	return text.Bytes(), err
}
