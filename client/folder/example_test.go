package folder_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/folder"
	"github.com/makegood-dev/makegood/engine"
)

// The jobs in an engine's folder are read while the engine works, or when it is gone; nothing can be changed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jobs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	eng, err := engine.Open(ctx, engine.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(eng.Close())

	jobs, err := folder.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := jobs.Page(ctx, client.Filter{}, "")
	fmt.Println(len(page.Jobs), err)
	_, err = jobs.Submit(ctx, makegood.Submission{Workflow: "hello"})
	fmt.Println(errors.Is(err, folder.ErrReadOnly), jobs.Close())
	// Output:
	// <nil>
	// 0 <nil>
	// true <nil>
}
