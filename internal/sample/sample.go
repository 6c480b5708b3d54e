// Package sample makes the first thing that a newcomer runs: the workflow order in a folder, and its shop in this
// process, with faults by script. It serves the shop alone, and knows no engine.
package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	// Workflow is the name of the sample's only workflow.
	Workflow = "order"
	// Orders is how many submissions the file of orders has.
	Orders = 100

	// usualAddr is the shop's address unless it is taken; the file in workflows/order names it.
	usualAddr = "127.0.0.1:4790"
	// seed gives faults in which the charge of the order o-1 goes well at its second try, and of those of the file most go
	// well, some are undone and one is left to a person.
	seed = 8
)

// Sample is a folder with the shop open beside it.
type Sample struct {
	// Folder holds the file of orders, and the folders of Workflows and Data.
	Folder string
	// Temporary: Close removes the folder.
	Temporary bool
	shop      *services.Server
}

// Open makes the sample in a folder, or takes the one that is there: a file that was changed stays as it is. An empty
// name makes a folder that is gone after Close. It refuses a folder with other files, and fails if the shop's address
// in the workflow file is taken. After an error the shop is closed, and a folder of no name is gone.
func Open(folder string) (_ *Sample, err error) {
	s := &Sample{Folder: folder, Temporary: folder == ""}
	if s.Temporary {
		if s.Folder, err = os.MkdirTemp("", "makegood-sample-"); err != nil {
			return nil, fmt.Errorf("the sample: %w", err)
		}
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("the sample in %s: %w", s.Folder, err), s.Close())
	}
	return s, nil
}

func (s *Sample) open() error {
	source, err := os.ReadFile(s.file())
	switch {
	case err == nil:
		s.shop, err = s.reopenShop(source)
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := s.isFree(); err != nil {
		return err
	}
	if s.shop, err = openShop(usualAddr); err != nil {
		s.shop, err = openShop("127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	return s.write()
}

// isFree returns an error if the folder has other files.
func (s *Sample) isFree() error {
	there, err := os.ReadDir(s.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("%s is in it, and no sample: name a folder that is new or empty", there[0].Name())
	}
	return err
}

// openShop opens the shop with the sample's faults.
func openShop(addr string) (*services.Server, error) {
	return services.Start(addr, services.Options{Script: script()})
}

func script() services.Script { return services.Script{Profile: services.FaultsSome, Seed: seed} }

// reopenShop opens the shop where a workflow file seeks it: the jobs of the folder keep the address of their birth.
func (s *Sample) reopenShop(source []byte) (*services.Server, error) {
	named := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/payments/charge`).FindSubmatch(source)
	if named == nil {
		return openShop("127.0.0.1:0")
	}
	shop, err := openShop(string(named[1]))
	if err != nil {
		return nil, fmt.Errorf("%w; %s names that address", err, s.file())
	}
	return shop, nil
}

// write writes the workflow file and the orders. The workflow file comes last: it tells a sample from another folder.
func (s *Sample) write() error {
	if err := os.MkdirAll(s.Workflows(), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.OrdersFile(), ordersFile(), 0o644); err != nil {
		return err
	}
	usual := []byte("http://" + usualAddr)
	return os.WriteFile(s.file(), bytes.ReplaceAll(order.YAML, usual, []byte(s.ShopURL())), 0o644)
}

// First is a single order: its charge fails once, and it goes well.
func First() makegood.Submission { return submission("o-1", 1) }

// Many are the orders of the file.
func Many() []makegood.Submission {
	var all []makegood.Submission
	for n := 1; n <= Orders; n++ {
		all = append(all, submission(fmt.Sprintf("order-%d", 100+n), n))
	}
	return all
}

// submission is an order of the n-th customer.
func submission(id string, n int) makegood.Submission {
	input := fmt.Sprintf(`{"id":%q,"customer":"c-%d","total":%d.5}`, id, n, 9+n%7)
	return makegood.Submission{Workflow: Workflow, ID: id, Input: json.RawMessage(input)}
}

// ordersFile is a file of submissions, as makegood submit --input reads it.
func ordersFile() []byte {
	var text strings.Builder
	for _, s := range Many() {
		fmt.Fprintf(&text, `{"workflow":%q,"id":%q,"input":%s}`+"\n", s.Workflow, s.ID, s.Input)
	}
	return []byte(text.String())
}

func (s *Sample) file() string { return filepath.Join(s.Workflows(), "order.yaml") }

// Workflows is the folder of the workflow file.
func (s *Sample) Workflows() string { return filepath.Join(s.Folder, "workflows") }

// Data is the folder for an engine to keep its jobs in; it need not be there.
func (s *Sample) Data() string { return filepath.Join(s.Folder, "data") }

// OrdersFile is the file with Orders submissions, a line each.
func (s *Sample) OrdersFile() string { return filepath.Join(s.Folder, "orders.jsonl") }

// ShopURL is where the shop is; GET /ledger there shows its books.
func (s *Sample) ShopURL() string { return s.shop.URL() }

// Agents are those of the workflow, beside the built-in http.
func (s *Sample) Agents() []agent.Handler {
	return order.Agents(s.ShopURL(), http.DefaultClient)
}

// Close closes the shop, loses its books, and removes a temporary folder: no engine may be open on it any more.
func (s *Sample) Close() error {
	var err error
	if s.shop != nil {
		err = s.shop.Close()
	}
	if s.Temporary {
		err = errors.Join(err, os.RemoveAll(s.Folder))
	}
	return err
}

// IsLinked reports whether workflow files are those of the sample: a program with others serves its own.
func IsLinked(files fs.FS) bool {
	if files == nil {
		return true
	}
	source, err := fs.ReadFile(files, "order/order.yaml")
	return err == nil && bytes.Equal(source, order.YAML)
}
