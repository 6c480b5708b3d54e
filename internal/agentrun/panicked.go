package agentrun

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

// maxPanicFrames is how many calls are looked at for the one that panicked.
const maxPanicFrames = 64

// panicked is the error of an agent that has panicked with a value. It is called where that was recovered.
func panicked(value any) error {
	text, at := limits.Clip(fmt.Sprintf("panic: %v", value)), panickedAt()
	if over := len(text) + len(at) - limits.MaxReasonBytes; over > 0 {
		// A long text is cut, and not the line behind it.
		text = strings.ToValidUTF8(text[:len(text)-over-len("...")], "") + "..."
	}
	return agent.Kind(makegood.KindPanic, errors.New(text+at))
}

// panickedAt says where a panic began that was just recovered: the innermost call that is not of Go's own library, as
// " (at DIRECTORY/FILE:LINE)". Empty: it cannot be known.
func panickedAt() string {
	callers := make([]uintptr, maxPanicFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	library, panics := "", false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			library, panics = strings.TrimSuffix(frame.File, "runtime/panic.go"), true
		case panics && !ofLibrary(frame, library):
			return fmt.Sprintf(" (at %s:%d)", path.Join(path.Base(path.Dir(frame.File)), path.Base(frame.File)), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// ofLibrary reports whether a call is in Go's own library, with its files in a directory. A program that was built
// without directories (-trimpath) does not show it: then only the runtime is recognised.
func ofLibrary(frame runtime.Frame, directory string) bool {
	if directory == "" {
		return strings.HasPrefix(frame.Function, "runtime.")
	}
	return strings.HasPrefix(frame.File, directory)
}
