// Command unroll writes the loops of a template on standard input out, for stand-ins that do not know the transform
// AWS::LanguageExtensions.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/makegood-dev/makegood/localstack"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "unroll:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	template, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	written, err := localstack.Unroll(template)
	if err != nil {
		return err
	}
	_, err = out.Write(written)
	return err
}
