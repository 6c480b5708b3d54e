package template

import (
	"os"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const templateFile = "../../../template.yaml"

// template is a template, and what the rules ask of it.
type template struct{ *stackfile.File }

// everything sets the parameters so that all that can be made is made.
func everything() map[string]any {
	return map[string]any{
		"EventBus": "yes", "Changes": "bus", "CompletionLinks": "yes", "ReserveConcurrency": "yes", "AlertEmail": "a@example.com", "Tracing": "Active", "SubnetIds": "subnet-1,subnet-2",
		"SecurityGroupIds": "sg-1", "WarmWrites": 8000, "PayloadBucket": "create", "WebhookParameter": "arn:aws:ssm:eu-central-1:123456789012:parameter/webhook",
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t *testing.T, text string) *template {
	t.Helper()
	loaded, err := parse(text, everything())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// parse reads a template, with these parameters in place of its defaults.
func parse(text string, parameters map[string]any) (*template, error) {
	file, err := stackfile.Parse(text, parameters)
	return &template{file}, err
}
