package folder_test

import (
	"context"
	"fmt"
	"os"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/engine/folder"
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
	page, err := jobs.Page(ctx, api.Filter{}, "")
	fmt.Println(len(page.Jobs), err)
	fmt.Println(jobs.Close())
	// Output:
	// <nil>
	// 0 <nil>
	// <nil>
}
