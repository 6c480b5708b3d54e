package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// programs are the tools that are not stand-ins, by the program's name.
func programs() map[string]product {
	return map[string]product{
		"cfn-lint": pip("cfn-lint", "1.58.0", "cfn-lint.txt"),
	}
}

// pip is a tool of PyPI, in a virtual environment of its own; the file lists it and what it needs.
func pip(name, version, requirements string) product {
	return product{
		name: name, version: version, files: []string{requirements},
		steps: [][]string{
			{"python3", "-m", "venv", "--clear", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements},
		},
		needs: map[string]string{"python3": "python3 python3-venv"},
	}
}

// runTool installs the tool whose name comes first, unless it is there, and runs it with the rest.
func runTool(ctx context.Context, arguments []string) error {
	p, known := programs()[arguments[0]]
	if !known {
		return errors.New("there is no tool of this name here")
	}
	if err := install(ctx, p); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(p.folder(), "venv", "bin", arguments[0]), arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
