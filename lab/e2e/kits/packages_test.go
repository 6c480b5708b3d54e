//go:build kits

package kits_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mypy is the version that checks the types of the kit for Python.
const mypy = "mypy==2.4.1"

// built is a folder that outlives the tests, so that what is fetched is fetched once.
func built(t *testing.T, name string) string {
	t.Helper()
	dir := root(t, ".build", "kits", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// command runs a command in a folder to its end, and returns what it wrote.
func command(t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// example returns the first block of code in a kit's README, asking another engine than the one that it names.
func example(t *testing.T, kit, language string, e *engine) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, root(t, "kits", kit, "README.md")), "```"+language+"\n")
	code, _, found := strings.Cut(rest, "\n```")
	const address = `"http://127.0.0.1:4777"`
	if !found || !strings.Contains(code, address) {
		t.Fatalf("the README of the kit for %s has no example of an agent at %s", kit, address)
	}
	return strings.Replace(code, address, `"`+e.server.URL+`"`, 1) + "\n"
}

// pays checks that an agent for payments charges and refunds, as the READMEs have it.
func pays(t *testing.T, e *engine) {
	t.Helper()
	undo := message{"agent": "payments", "undo": message{"forwardKey": "o-1/s/1", "outcome": "unknown", "output": nil}}
	e.give(
		task("o-1", "charge", message{"amount": 10}, message{"agent": "payments"}),
		task("o-2", "charge", message{"amount": 1001}, message{"agent": "payments"}), task("o-3", "refund", message{"amount": 10}, undo),
	)
	wants(t, e.answer("o-1")["output"], message{"receipt": "r-o-1/s/1"})
	failed(t, e.answer("o-2"), false, "no", 0, "more than we may charge")
	wants(t, e.answer("o-2")["error"].(message)["kind"], "too_much")
	wants(t, e.answer("o-3")["type"], "StepSucceeded")
}

// shown returns the code about large payloads in the docs, for an agent that is called press.
func shown(t *testing.T, language string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, root(t, "docs", "agents-in-other-languages.md")), "## Large payloads\n")
	_, rest, _ = strings.Cut(rest, "```"+language+"\n")
	code, _, found := strings.Cut(rest, "\n```")
	if !found || !strings.Contains(code, "render") || !strings.Contains(code, "check") {
		t.Fatalf("the docs show no agent in %s that renders and checks", language)
	}
	return code + "\n"
}

// presses checks that an agent writes the file report.pdf, and reads what it has written.
func presses(t *testing.T, e *engine, wrote string, checked any) {
	t.Helper()
	e.give(task("d1", "render", message{}, message{"agent": "press"}))
	output := e.answer("d1")["output"]
	inner := message{"sha256": hashOf([]byte(wrote)), "bytes": float64(len(wrote)), "type": "application/pdf", "by": "press"}
	wants(t, output, message{"report": message{"$payload": inner}, "pages": 12.0})
	e.give(task("d2", "check", message{"report": e.lay("d2", []byte(wrote), "")}, message{"agent": "press"}))
	wants(t, e.answer("d2")["output"], checked)
}

// The kit for Python is installed by pip, its types hold under mypy --strict, and the agent of its README works.
func TestThePythonPackage(t *testing.T) {
	t.Parallel()
	venv := built(t, "python")
	command(t, venv, need(t, "python3"), "-m", "venv", venv)
	// What pip builds it builds in the folder that it is given.
	kit := t.TempDir()
	if err := os.CopyFS(kit, os.DirFS(root(t, "kits", "python"))); err != nil {
		t.Fatal(err)
	}
	bin := func(name string) string { return filepath.Join(venv, "bin", name) }
	command(t, kit, bin("pip"), "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", mypy, kit)
	command(t, kit, bin("mypy"), "--strict", "--ignore-missing-imports", "makegood_agent")

	e := newEngine(t)
	put(t, filepath.Join(kit, "elsewhere", "payments.py"), example(t, "python", "python", e))
	begin(t, exec.Command(bin("python"), filepath.Join(kit, "elsewhere", "payments.py")))
	pays(t, e)

	e = newEngine(t)
	put(t, filepath.Join(kit, "elsewhere", "report.pdf"), "one\ntwo\n")
	put(t, filepath.Join(kit, "elsewhere", "press.py"), "from makegood_agent import Agent, HTTPDoor, run\n\npress = Agent(\"press\")\n"+
		shown(t, "python")+"\nrun(press, HTTPDoor(\""+e.server.URL+"\"))\n")
	cmd := exec.Command(bin("python"), "press.py")
	cmd.Dir = filepath.Join(kit, "elsewhere")
	begin(t, cmd)
	presses(t, e, "one\ntwo\n", message{"lines": 2.0})
}

// The kit for TypeScript is installed by npm from its folder, as its README says, and the agent of the README compiles and works.
func TestTheTypeScriptPackage(t *testing.T) {
	t.Parallel()
	npm, dir, project := need(t, "npm"), typescriptKit(t), t.TempDir()
	put(t, filepath.Join(project, "package.json"), `{"type": "module"}`)
	command(t, project, npm, "install", "--no-audit", "--no-fund", dir)
	e := newEngine(t)
	put(t, filepath.Join(project, "payments.ts"), example(t, "typescript", "ts", e))
	other := newEngine(t)
	put(t, filepath.Join(project, "press.ts"), "import {createHash} from \"node:crypto\";\nimport {Agent, HTTPDoor, run} from \"makegood-agent\";\n"+
		"import type {PayloadReference} from \"makegood-agent\";\n\nconst press = new Agent(\"press\");\n"+shown(t, "typescript")+
		"\nawait run(press, new HTTPDoor(\""+other.server.URL+"\"));\n")
	put(t, filepath.Join(project, "report.pdf"), "a report")
	tsc := filepath.Join(dir, "node_modules", ".bin", "tsc")
	command(t, project, tsc, "--strict", "--target", "es2022", "--module", "nodenext", "--typeRoots", filepath.Join(dir, "node_modules", "@types"), "--types", "node", "payments.ts", "press.ts")
	begin(t, exec.Command(need(t, "node"), filepath.Join(project, "payments.js")))
	pays(t, e)
	cmd := exec.Command(need(t, "node"), "press.js")
	cmd.Dir = project
	begin(t, cmd)
	presses(t, other, "a report", hashOf([]byte("a report")))
}
