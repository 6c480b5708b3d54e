// Command press is a function of an agent that writes and reads large payloads, for the tests of package functions.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/onlambda"
)

// report is what an action prints.
type report struct {
	Report makegood.Payload `json:"report"`
	// Peak is the most memory that the process has had, in kB.
	Peak string `json:"peak"`
}

func main() {
	onlambda.Agent(agent.New("payments",
		agent.Do("print", func(ctx context.Context, bytes int64) (report, error) {
			p, err := agent.WritePayload(ctx, "application/pdf", io.LimitReader(letters{}, bytes))
			return report{p, peak()}, err
		}),
		agent.Do("read", func(ctx context.Context, in report) (report, error) {
			r, err := agent.OpenPayload(ctx, in.Report)
			if err != nil {
				return report{}, err
			}
			defer r.Close()
			digest := sha256.New()
			if _, err := io.Copy(digest, r); err != nil {
				return report{}, err
			}
			if got := hex.EncodeToString(digest.Sum(nil)); got != in.Report.SHA256 {
				return report{}, agent.Final(fmt.Errorf("read %s, want %s", got, in.Report.SHA256))
			}
			return report{in.Report, peak()}, nil
		}),
	))
}

// letters are as many as anybody reads.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("a line of a report\n"), len(p)/19+1))
	return len(p), nil
}

// peak is VmHWM of the process.
func peak() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB"))
}
