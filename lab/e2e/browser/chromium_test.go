//go:build browser

package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// program is the makegood command, built once. chromium is the browser, started once; each test has a profile of its own in it.
var (
	program  string
	chromium context.Context
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "makegood-browser-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "makegood")
	if out, err := exec.Command("go", "build", "-o", program, "../../../cmd/makegood").CombinedOutput(); err != nil {
		return complain(fmt.Errorf("build makegood: %w\n%s", err, out))
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		return complain(fmt.Errorf("%w: the page is tested with it (apt-get install chromium; .ci/run does)", err))
	}
	fonts, err := filepath.Abs("testdata/fonts.conf")
	if err != nil {
		return complain(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Env("FONTCONFIG_FILE="+fonts))
	if os.Getuid() == 0 {
		// Chromium's sandbox does not start for root, and what it would keep apart here is our own page.
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, quit := chromedp.NewContext(ctx)
	defer quit()
	if err := chromedp.Do(ctx); err != nil {
		return complain(fmt.Errorf("start %s: %w", path, err))
	}
	chromium = ctx
	return m.Run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
