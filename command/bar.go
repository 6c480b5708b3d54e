package command

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows progress on a terminal, and nothing in a pipe. It names no time that is left: jobs wait for retries and
// deadlines, and those that ended in an earlier run took none of this one's.
type bar struct {
	ctx context.Context
	bar *progressbar.ProgressBar
}

func newBar(ctx context.Context, w io.Writer, total int) bar {
	if !isTerminal(w) {
		return bar{}
	}
	return bar{ctx, progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("jobs"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// ended draws how many jobs have ended. Once it was told to stop the bar stays as it stood, and the lines below it.
func (b bar) ended(n int) {
	if b.bar != nil && b.ctx.Err() == nil {
		_ = b.bar.Set(n) // a bar that cannot be drawn is no reason to stop
	}
}

// close wipes a bar that has come to its end.
func (b bar) close() {
	if b.bar != nil && b.ctx.Err() == nil {
		_ = b.bar.Finish()
	}
}
