package probed

import (
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/thief"
)

// What make aws-verify expects of AWS is what the template's statements say.
func TestWhatIsExpectedOfAWSIsWhatTheTemplateSays(t *testing.T) {
	template, err := os.ReadFile("../../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := thief.World()
	policies, err := iam.Load(string(template), nil, w)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&iam.Judge{Policies: policies})
	defer server.Close()
	queues := "https://sqs." + w.Region + ".amazonaws.com/" + w.Account + "/" + w.Stack + "-"
	stack := Stack{Table: w.Names["Table"], Index: "CompleteBy", EventsURL: queues + "events", TasksURL: queues + "tasks-payments", EventBody: "x", TaskBody: "x"}
	for i, role := range []string{"SchedulerRole", "inventoryAgentRole", "SupervisorRole"} {
		c := aws.Config{
			Region: w.Region, BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider(role, "secret", ""), RetryMaxAttempts: 1,
		}
		mq := sqs.NewFromConfig(c, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })
		answers := Probe(t.Context(), stack, dynamodb.NewFromConfig(c), mq)
		if len(answers) != len(May()) {
			t.Errorf("%d tries are made, and %d are expected", len(answers), len(May()))
		}
		for what, may := range May() {
			want := map[bool]string{true: "allowed", false: "denied"}[may[i]]
			if answers[what] != want {
				t.Errorf("%s: %s: got %q, want it %s", role, what, answers[what], want)
			}
		}
	}
}
