package workflowfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is shown of a definition is a file that makes that very definition.
func TestADefinitionWrittenAsAFileIsTheSameDefinition(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/*/*.yaml", "../../workflows/*/*.yaml", "../../examples/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	written := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := Parse(file, source)
		if err != nil {
			continue // one of the bad files, or no workflow
		}
		text, err := compiled.Source()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := Parse(file, text)
		if err != nil || again.Hash != compiled.Hash {
			t.Errorf("%s: got %v, want the hash %s of\n%s", file, err, compiled.Hash, text)
		}
		written++
	}
	if written < 20 {
		t.Errorf("%d files were written, want many", written)
	}
}

func TestAFileThatIsWrittenLeavesOutDefaults(t *testing.T) {
	const source = `name: order
steps:
  - name: reserve
    agent: shop
    undo: {action: release}
  - name: pay
    agent: payments
    action: charge
    with: {amount: "${ .input.total }", note: "true", zip: "01234", empty: ""}
    exclusive: false
    retry: {attempts: 8}
    undo: none
  - name: first
    agent: shop
    needs: []
    undo: none
  - name: ship
    agent: shop
    needs: {any: [pay, first]}
`
	c, err := Parse("f", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Source()
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: order
steps:
  - name: reserve
    agent: shop
    undo:
      action: release
  - name: pay
    agent: payments
    action: charge
    with:
      amount: "${ .input.total }"
      empty: ""
      note: "true"
      zip: "01234"
    exclusive: false
    retry:
      attempts: 8
    undo: none
  - name: first
    agent: shop
    needs: []
    undo: none
  - name: ship
    agent: shop
    needs: {any: [pay, first]}
`
	if got := string(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a stored definition may hold that no file could say is written whole, and never fails.
func TestADefinitionThatNoFileWouldBecomeIsWrittenAllTheSame(t *testing.T) {
	c, err := Load([]byte(`{"name":"old","onFailure":"stop","steps":[{"action":"a","agent":"x","name":"a","needs":[],"retry":{"attempts":5,"backoff":"1s","max":"1m0s"},"startBy":"10m0s","timeout":"30s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := c.Source(); err != nil || !strings.HasPrefix(string(text), "name: old\n") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestTheSourceOfAMapIsThatOfAFile(t *testing.T) {
	const file = `name: order
steps:
  - name: reserve
    agent: stock
    when: ${ .input.go }
    with: {sku: "${ .item.sku }", n: "${ .index }"}
    retry: {attempts: 3}
    undo: {action: release}
    map: {over: "${ .input.lines }", concurrency: 20, tolerate: {share: 0.01, after: 500}, outputs: manifest}
`
	c, err := Parse("order.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := c.Source()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("source", source)
	if err != nil || again.Hash != c.Hash || strings.Contains(string(source), "timeout") {
		t.Errorf("%v; the source is\n%s", err, source)
	}
}
