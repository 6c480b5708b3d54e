//go:build !linux

// Command money shows what jobs have cost, on Linux alone: what stands for Lambda here needs its processes.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "money: runs on Linux alone")
	os.Exit(1)
}
