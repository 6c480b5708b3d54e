package httpapi

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/openapi.json anew")

const documentFile = "../../docs/openapi.json"

func TestTheDocumentIsThatOfTheRoutes(t *testing.T) {
	want := Document()
	if *rewrite {
		if err := os.WriteFile(documentFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/openapi.json is not that of the table of routes: run go generate ./internal/httpapi")
	}
}
