// Command testcount runs go test and says in the end how many tests there were: its last line is
// "N passed, N failed, N skipped". Its arguments are those of go test; its exit code is go test's.
//
// It prints a line a package as the packages end, and of a failed test all that it printed. It
// changes nothing about how the tests run.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code of go test, or 1 when that could not be run or understood, or ended well
// without there having been a test.
func run(args []string, stdout, stderr io.Writer) int {
	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	test.Stderr = stderr
	events, err := test.StdoutPipe()
	if err == nil {
		err = test.Start()
	}
	if err != nil {
		fmt.Fprintf(stderr, "testcount: run go test: %v\n", err)
		return 1
	}
	total, readErr := count(events, stdout)
	code := exitCode(test.Wait())
	fmt.Fprintln(stdout, total)
	switch {
	case readErr != nil:
		fmt.Fprintf(stderr, "testcount: read what go test says: %v\n", readErr)
		return 1
	case code == 0 && (total.failed > 0 || total.passed == 0):
		fmt.Fprintln(stderr, "testcount: go test is content, and yet some test failed or none passed")
		return 1
	}
	return code
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		return 1
	}
}
