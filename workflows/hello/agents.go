// Package hello is the workflow that shows a fresh stack at work: hello.yaml, and a Go agent that needs no service.
package hello

import (
	"context"
	_ "embed" // for hello.yaml
	"errors"

	"github.com/makegood-dev/makegood/agent"
)

// YAML is the workflow file.
//
//go:embed hello.yaml
var YAML []byte

// errRefused is the answer of a door with no letter box.
var errRefused = errors.New("the letter is refused, as the input asks for")

// Note is who is written to.
type Note struct {
	Name string `json:"name"`
}

// Letter is what was written, and whether it will be refused.
type Letter struct {
	Text   string `json:"text"`
	Refuse bool   `json:"refuse,omitempty"`
}

// Agents returns the agent.
func Agents() []agent.Handler {
	return []agent.Handler{agent.New("hello", agent.Do("write", write).Undo("shred", shred), agent.Do("post", post))}
}

func write(_ context.Context, to Note) (Letter, error) {
	return Letter{Text: "Dear " + to.Name + ", it works."}, nil
}

// shred has nothing to undo: the letter is in the job alone.
func shred(context.Context, Note, *Letter) error { return nil }

func post(_ context.Context, l Letter) (Letter, error) {
	if l.Refuse {
		return Letter{}, agent.Final(agent.NotApplied(errRefused))
	}
	return l, nil
}
