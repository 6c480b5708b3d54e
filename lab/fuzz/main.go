// Command fuzz feeds the Scheduler's handler and the agents' with messages that were sent by real jobs
// and then spoilt, and counts what became of each: handled, or in quarantine with its reason. One that
// is neither is lost; a panic, or a message that is refused although it can be read, is a violation too.
//
// The messages are decided by the seed. The command checks handlers, and no decoder on its own: that is
// what the Fuzz targets beside the decoders are for.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

// summary is the last line of what the command prints.
type summary struct {
	Seed     uint64            `json:"seed"`
	Messages int               `json:"messagesEach"`
	Handlers map[string]*tally `json:"handlers"`
	Seconds  float64           `json:"seconds"`
}

func main() {
	messages := flag.Int("messages", 1_000_000, "how many messages each handler gets")
	seed := flag.Uint64("seed", 1, "decides the messages")
	flag.Parse()
	if err := run(context.Background(), *seed, *messages); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// run feeds both handlers and prints what became of the messages. A violation is an error.
func run(ctx context.Context, seed uint64, messages int) error {
	start := time.Now()
	s := summary{Seed: seed, Messages: messages, Handlers: map[string]*tally{}}
	var broken error
	for _, name := range []string{"scheduler", "agent"} {
		t, err := feed(ctx, name, seed, messages, func(h queue.Handler) queue.Handler { return h })
		if err != nil {
			return fmt.Errorf("feed the %s: %w", name, err)
		}
		s.Handlers[name] = t
		fmt.Printf("%s: %d messages, %d handled, %d in quarantine for %d kinds of reasons, %d left, %d given back, %d panics, %d lost\n",
			name, t.Messages, t.Handled, t.Quarantined, len(t.reasons), t.Left, t.Returned, t.Panics, t.Lost)
		for _, violation := range t.violations {
			fmt.Println(" ", violation)
			broken = fmt.Errorf("%s: %s; again with -seed %d", name, violation, seed)
		}
	}
	s.Seconds = float64(time.Since(start).Milliseconds()) / 1000
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return broken
}
