package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// program is a tool that is not a stand-in, and the command that runs it, in its folder.
type program struct {
	product
	command []string
}

// programs are the tools by their names.
func programs() map[string]program {
	translate := pip("sam-translate", "1.115.0", "sam-translate.txt")
	translate.files = append(translate.files, "sam_translate.py")
	return map[string]program{
		"cfn-lint":      {pip("cfn-lint", "1.58.0", "cfn-lint.txt"), []string{"venv/bin/cfn-lint"}},
		"sam":           {pip("sam", "1.170.0", "sam.txt"), []string{"venv/bin/sam"}},
		"sam-translate": {translate, []string{"venv/bin/python", "sam_translate.py"}},
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
	if err := install(ctx, p.product); err != nil {
		return err
	}
	var line []string
	for _, file := range p.command {
		line = append(line, filepath.Join(p.folder(), file))
	}
	line = append(line, arguments[1:]...)
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
