package sample

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/workflows"
	"github.com/makegood-dev/makegood/workflows/order"
)

func open(t *testing.T, folder string) *Sample {
	t.Helper()
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheWorkflowOfTheFolderAsksTheShopThatIsOpen(t *testing.T) {
	s := open(t, "")
	files, err := workflowfile.ReadAll(os.DirFS(s.Workflows()), s.Workflows())
	if err != nil || len(files) != 1 || files[0].Compiled.Workflow.Name != Workflow {
		t.Fatalf("got %v, %v", files, err)
	}
	if source := read(t, s.file()); strings.Count(source, s.ShopURL()+"/payments/") != 2 {
		t.Errorf("the shop is at %s, and the file says\n%s", s.ShopURL(), source)
	}
	resp, err := http.Get(s.ShopURL() + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if books, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("the ledger: got %s, %s", resp.Status, books)
	}
}

func TestATemporaryFolderIsGoneAfterwards(t *testing.T) {
	s := open(t, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Folder); !os.IsNotExist(err) {
		t.Errorf("%s: got %v, want that it is gone", s.Folder, err)
	}
}

// Jobs that are under way ask the shop where it was when they began.
func TestANamedFolderIsTakenUpAgainWithWhatSomebodyChanged(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shop")
	first := open(t, folder)
	url := first.ShopURL()
	changed := read(t, first.file()) + "# mine\n"
	if err := os.WriteFile(first.file(), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), "order.yaml names that address") {
		t.Errorf("a second on the folder: got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, folder)
	if again.ShopURL() != url || read(t, again.file()) != changed {
		t.Errorf("got the shop at %s and\n%s", again.ShopURL(), read(t, again.file()))
	}
}

func TestAFolderOfSomethingElseIsRefusedAndLeftAlone(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), "thesis.txt is in it, and no sample") {
		t.Errorf("got %v", err)
	}
	if there, _ := os.ReadDir(folder); len(there) != 1 {
		t.Errorf("got %v beside the file", there)
	}
}

// The first order of a newcomer goes well, at the second try of a step; of the hundred of the file some do not.
func TestTheFaultsShowWhatThereIsToSee(t *testing.T) {
	ends := map[makegood.ProcessState]int{}
	for _, s := range Many() {
		ends[script().Ends(s.ID)]++
	}
	if ends[makegood.JobError] != 1 || ends[makegood.JobUndone] < 5 || ends[makegood.JobProcessed] < 80 {
		t.Errorf("the orders of the file end %v", ends)
	}
	if lines := strings.Count(string(ordersFile()), "\n"); lines != Orders {
		t.Errorf("the file has %d lines, want %d", lines, Orders)
	}
	if end, fault := script().Ends(First().ID), script().Fault(First().ID, "charge", 1); end != makegood.JobProcessed || fault == "" {
		t.Errorf("o-1 ends %s, and its first charge meets fault %q", end, fault)
	}
}

func TestOnlyAProgramWithNothingOfItsOwnIsLinkedWithTheSample(t *testing.T) {
	if !IsLinked(nil) || !IsLinked(workflows.Files) {
		t.Error("the makegood command is not known")
	}
	for _, files := range []fstest.MapFS{
		{"trip.yaml": {Data: order.YAML}},
		{"order/order.yaml": {Data: []byte("name: order\n")}},
	} {
		if IsLinked(files) {
			t.Errorf("%v is taken for the sample", files)
		}
	}
}
