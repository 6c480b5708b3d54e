package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// axeVariable says, to a command that is run with axe-core, where that is.
const axeVariable = "MAKEGOOD_AXE"

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
		"mkdocs":        {pip("mkdocs", "1.6.1", "mkdocs.txt"), []string{"venv/bin/mkdocs"}},
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

// axe is what looks a page through for what keeps people from reading it. npm holds it to the hash in
// package-lock.json.
func axe() product {
	return product{
		name: "axe-core", version: "4.14.1", files: []string{"package.json", "package-lock.json"},
		steps: [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}},
		needs: map[string]string{"npm": "nodejs npm"},
	}
}

// collectorVariable says, to a command that is run with a collector, where that is.
const collectorVariable = "MAKEGOOD_COLLECTOR"

// collector is one for OpenTelemetry, a program of PyPI.
func collector() product {
	p := pip("rotel", "0.0.1a15", "rotel.txt")
	p.steps = append(p.steps, []string{"sh", "-c", "cp venv/lib/python3*/site-packages/rotel/rotel-agent . && chmod +x rotel-agent"})
	return p
}

// runWithAxe runs a command, in whose environment it says where axe-core is.
func runWithAxe(ctx context.Context, command []string) error {
	return runWith(ctx, axe(), axeVariable, "node_modules/axe-core/axe.min.js", command)
}

// runWithCollector runs a command, in whose environment it says where the collector is.
func runWithCollector(ctx context.Context, command []string) error {
	return runWith(ctx, collector(), collectorVariable, "rotel-agent", command)
}

// rieVariable holds the path of the emulator of Lambda's runtime, for a command that is run with it.
const rieVariable = "MAKEGOOD_RIE"

// runWithRIE runs a command with the path of the emulator in its environment: AWS SAM carries it.
func runWithRIE(ctx context.Context, command []string) error {
	arch := map[string]string{"amd64": "x86_64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return runWith(ctx, programs()["sam"].product, rieVariable, "venv/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-"+arch, command)
}

// runWith runs a command, in whose environment a variable says where a file of a product is; the name
// of the file may be a pattern.
func runWith(ctx context.Context, p product, variable, file string, command []string) error {
	if err := install(ctx, p); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	found, err := filepath.Glob(filepath.Join(p.folder(), file))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("%s has no %s (%v)", p, file, err)
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Env = append(os.Environ(), variable+"="+found[0])
	process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
	return process.Run()
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
