package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// asCommand has the test's own program be the command, which starts itself.
const asCommand = "LEDGER_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	main()
}

// Real processes, killed at any moment, and attempts in another one that hang until they were given up. make ledger-demo
// kills a thousand times.
func TestHoweverOftenItIsKilledTheLedgerHasEachLineOnce(t *testing.T) {
	t.Setenv(asCommand, "yes")
	var out bytes.Buffer
	if err := start(context.Background(), []string{"-kills", "12", "-zombies", "3"}, nil, &out); err != nil {
		t.Fatal(err)
	}
	var done, undone, transfers, lines int
	if _, err := fmt.Sscanf(out.String(), "12 kills, %d transfers: %d done, %d undone; %d lines", &transfers, &done, &undone, &lines); err != nil {
		t.Fatalf("got %q: %v", out.String(), err)
	}
	if transfers == 0 || lines < 2*done {
		t.Errorf("got %d transfers and %d lines", transfers, lines)
	}
	if want := "3 attempts that hung and were given up were woken: 3 of their transactions were refused\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q at its end", out.String(), want)
	}
}
