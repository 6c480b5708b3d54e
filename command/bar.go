package command

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows progress on a terminal, and prints none in a pipe. It estimates no time that is left: jobs wait for
// retries and deadlines, and those that ended in an earlier run took none of this one's.
type bar struct {
	ctx context.Context
	bar *progressbar.ProgressBar
}

func newBar(ctx context.Context, w io.Writer, total int) bar {
	if !isTerminal(w) {
		return bar{}
	}
	return drawBar(ctx, w, int64(total), progressbar.OptionSetDescription("jobs"), progressbar.OptionShowCount())
}

// newByteBar shows progress in bytes; total -1: the number is not known.
func newByteBar(ctx context.Context, w io.Writer, total int64) bar {
	if !isTerminal(w) {
		return bar{}
	}
	return drawBar(ctx, w, total, progressbar.OptionSetDescription("payload"), progressbar.OptionShowBytes(true))
}

func drawBar(ctx context.Context, w io.Writer, total int64, shows ...progressbar.Option) bar {
	return bar{ctx, progressbar.NewOptions64(total, append(shows,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)...)}
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

// endedOf sets the total of the bar, and shows n ended ones.
func (b bar) endedOf(n, total int) {
	if b.bar != nil && b.bar.GetMax() != total {
		b.bar.ChangeMax(total)
	}
	b.ended(n)
}

// over draws how far a reader was read. One that can be read again begins anew then, and can here, too.
func (b bar) over(from io.Reader) io.Reader {
	if b.bar == nil {
		return from
	}
	d := &metered{from: from, bar: b}
	if seeker, is := from.(io.Seeker); is {
		return &meteredAgain{d, seeker}
	}
	return d
}

// metered draws how far it was read.
type metered struct {
	from io.Reader
	bar  bar
	at   int64
}

func (d *metered) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	d.at += int64(n)
	if d.bar.ctx.Err() == nil {
		_ = d.bar.bar.Set64(d.at) // a bar that cannot be drawn is no reason to stop
	}
	return n, err
}

// meteredAgain can be read again.
type meteredAgain struct {
	*metered
	seeker io.Seeker
}

func (d *meteredAgain) Seek(offset int64, whence int) (at int64, err error) {
	d.at, err = d.seeker.Seek(offset, whence)
	return d.at, err
}

// close wipes a bar that has come to its end.
func (b bar) close() {
	if b.bar != nil && b.ctx.Err() == nil {
		_ = b.bar.Finish()
	}
}
