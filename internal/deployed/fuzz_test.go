package deployed

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// FuzzConfig reads any configuration: it is good, or what is wrong names a variable.
func FuzzConfig(f *testing.F) {
	f.Add("events=e,quarantine=q", "shop=replies-shop", "10.0.0.0/8", "16", "INFO")
	f.Fuzz(func(t *testing.T, queues, replies, allow, shards, level string) {
		environment := map[string]string{
			VarTable: "t", VarIndex: "i", VarShards: shards, VarQueues: queues, VarReplies: replies, VarHTTPAllow: allow,
			VarLogLevel: level, VarRetention: shards, VarAgent: makegood.HTTPAgent, varRegion: "eu-central-1", varFunction: "f", varRuntimeAPI: "127.0.0.1:1",
		}
		getenv := func(name string) string { return environment[name] }
		c, err1 := readScheduler(getenv)
		_, err2 := readAgent(getenv, nil)
		_, err3 := readSupervisor(getenv)
		for _, err := range []error{err1, err2, err3} {
			if err != nil && !strings.Contains(err.Error(), "MAKEGOOD_") {
				t.Errorf("got %v, want the variable that is wrong", err)
			}
		}
		for name, queue := range c.replies {
			if err1 == nil && (name == "" || queue == "" || !strings.Contains(replies, name+"=")) {
				t.Errorf("%q registers %q for %q", replies, queue, name)
			}
		}
	})
}
