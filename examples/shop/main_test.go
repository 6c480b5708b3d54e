package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/sample/services"
)

// start runs the command until the test ends it; stop gives its exit code.
func start(t *testing.T, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"--addr", "127.0.0.1:0"}, args...), in, io.Discard)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the shop ended with %d before it said where it is: %v", <-code, err)
	}
	url = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`).FindString(line)
	return url, func() int { cancel(); return <-code }
}

func charge(t *testing.T, url string, attempt int) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+services.Charge.Path(), strings.NewReader(`{"order":"7","amount":1.5}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "7/charge/1")
	r.Header.Set("Makegood-Attempt", fmt.Sprint(attempt))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestTheCommandSaysWhereItServesAndWritesTheLedgerFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	url, stop := start(t, "--ledger-file", file)
	for attempt := 1; attempt <= 2; attempt++ {
		if status := charge(t, url, attempt); status != 200 {
			t.Errorf("charge: got %d, want 200", status)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code: got %d, want 0", code)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"order":"7","action":"charge","key":"7/charge/1","attempt":1,"amount":1.5,`
	if got := string(written); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("ledger file: got %s, want one line that begins with %s", got, want)
	}
}

func TestWithoutDedupeEveryRequestCounts(t *testing.T) {
	url, stop := start(t, "--dedupe=false")
	charge(t, url, 1)
	charge(t, url, 2)
	l, err := services.ReadLedger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Orders["7"].Charged; got != 2 {
		t.Errorf("charges: got %d, want 2", got)
	}
	stop()
}

func TestBadUsageIsRefusedWithAReason(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--faults", "wild"}, `faults "wild": want none, some or nasty`},
		{[]string{"--addr", "0.0.0.0:0"}, "want a loopback address"},
		{[]string{"--ledger-file", "/no/such/folder/x"}, "open the ledger file"},
		{[]string{"extra"}, `unexpected argument "extra"`},
	} {
		var stderr bytes.Buffer
		// A context that has ended: should the shop open after all, it closes at once.
		ended, end := context.WithCancel(t.Context())
		end()
		if code := run(ended, row.args, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), row.want) {
			t.Errorf("%v: got %d and %q, want 1 and %q", row.args, code, stderr.String(), row.want)
		}
	}
}
