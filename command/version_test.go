package command

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestTheVersionNamesCommitGoAndWhoseItIs(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	here := ", " + runtime.GOOS + "/" + runtime.GOARCH
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3, commit abc with changes, go1.26.0" + here: {GoVersion: "go1.26.0", Main: debug.Module{Path: module, Version: "v1.2.3"}, Settings: commit},
		"of no version, go1.26.0" + here:                   {GoVersion: "go1.26.0", Main: debug.Module{Path: module}},
		"v0.1.0, makegood v1.2.3, go1.26.0" + here: {
			GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/trips", Version: "v0.1.0"},
			Deps: []*debug.Module{{Path: "example.com/other", Version: "v9.0.0"}, {Path: module, Version: "v1.2.3"}},
		},
	} {
		if got := version(&info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheCommandSaysItsVersion(t *testing.T) {
	code, stdout, _ := ask(t, "--version")
	if code != 0 || !regexp.MustCompile(`^makegood version \S.*, go1\.\S+, \w+/\w+\n$`).MatchString(stdout) {
		t.Errorf("got %d, %q", code, stdout)
	}
}
