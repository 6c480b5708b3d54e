package command_test

import (
	"context"
	"testing/fstest"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/command"
)

// The main of a command of one's own: bin/greetings dev knows the workflow, and run and dev have the agent in them. Main ends
// the process, so this is compiled and not run; lab/e2e/outside builds such commands and runs them.
func ExampleMain() {
	files := fstest.MapFS{"greet.yaml": {Data: []byte("name: greet\nsteps: [{name: greet, agent: post}]\n")}} // or an embed.FS
	post := agent.New("post", agent.Do("greet", func(_ context.Context, name string) (string, error) {
		return "Dear " + name, nil
	}))
	command.Main(files, post)
}
