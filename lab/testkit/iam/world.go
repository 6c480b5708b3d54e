package iam

import (
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
)

// Role returns the role under which a program of functions/ runs that has this environment. It is also its access key.
func Role(program string, environment []string) string {
	value := func(name string) (last string) {
		for _, variable := range environment {
			if v, is := strings.CutPrefix(variable, name+"="); is {
				last = v
			}
		}
		return last
	}
	switch path.Base(program) {
	case "scheduler":
		return "SchedulerRole"
	case "supervisor":
		return "SupervisorRole"
	case "door":
		return value("MAKEGOOD_DOOR") + "DoorRole"
	default:
		return value("MAKEGOOD_AGENT") + "AgentRole"
	}
}

// Key is the variable that gives a program a role's access key.
func Key(role string) string { return "AWS_ACCESS_KEY_ID=" + role }

// Everything are parameters with which a stack has all that can be asked for, and a bucket of this name.
func Everything(bucket string) map[string]any {
	return map[string]any{"EventBus": "yes", "Changes": "bus", "CompletionLinks": "yes", "SubnetIds": "subnet-1", "PayloadBucket": bucket}
}

// Start puts a judge before stand-ins for a test, by the policies of the template at root, and returns its address.
// What it has refused when the test ends fails the test.
func Start(t testing.TB, root string, w World, upstream map[string]string) (j *Judge, address string) {
	t.Helper()
	template, err := os.ReadFile(path.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policies, err := Load(string(template), Everything(w.Names["Payloads"]), w)
	if err != nil {
		t.Fatal(err)
	}
	j = &Judge{Policies: policies, Upstream: upstream}
	server := httptest.NewServer(j)
	t.Cleanup(func() {
		server.Close()
		for _, refused := range j.Refused() {
			t.Errorf("refused: %s", refused)
		}
		if judged := j.Judged(); len(judged) == 0 {
			t.Error("no request came by the judge, so nothing was shown")
		} else {
			t.Logf("requests judged by role: %v", judged)
		}
	})
	return j, server.URL
}
