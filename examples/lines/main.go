// Command lines is the makegood command with an order whose lines are reserved one by one, and its agents: docs/maps.md
// has what to type. A line with a sku that the file "missing" names is out of stock.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/command"
)

//go:embed order.yaml
var files embed.FS

type line struct {
	Order  string `json:"order"`
	Line   int    `json:"line"`
	Sku    string `json:"sku"`
	Pieces int    `json:"pieces"`
}

func reserve(_ context.Context, l line) (string, error) {
	time.Sleep(20 * time.Millisecond)
	missing, err := os.ReadFile("missing")
	if err == nil && slices.Contains(strings.Fields(string(missing)), l.Sku) {
		return "", agent.NotApplied(agent.Final(fmt.Errorf("%s is out of stock", l.Sku)))
	}
	return fmt.Sprintf("shelf %d: %d of %s", l.Line, l.Pieces, l.Sku), nil
}

func release(context.Context, line, *string) error { return nil }

type bill struct {
	Order    string   `json:"order"`
	Reserved []string `json:"reserved"`
}

func charge(_ context.Context, b bill) (string, error) {
	if len(b.Reserved) == 0 {
		return "", agent.NotApplied(agent.Final(errors.New("nothing was reserved")))
	}
	return fmt.Sprintf("charged for %d lines", len(b.Reserved)), nil
}

func main() {
	command.Main(files,
		agent.New("warehouse", agent.Do("reserve", reserve).Undo("release", release)),
		agent.New("payments", agent.Do("charge", charge)),
	)
}
