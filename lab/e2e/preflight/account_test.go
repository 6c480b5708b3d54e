package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// account answers as CloudFormation and Lambda do, of a stack with these parameters.
func account(t *testing.T, state string, limit, unreserved int, standing ...string) {
	t.Helper()
	var parameters strings.Builder
	for _, parameter := range standing {
		name, value, _ := strings.Cut(parameter, "=")
		fmt.Fprintf(&parameters, "<member><ParameterKey>%s</ParameterKey><ParameterValue>%s</ParameterValue></member>", name, value)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/2016-08-19/account-settings/" && limit == 0:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodGet && r.URL.Path == "/2016-08-19/account-settings/":
			fmt.Fprintf(w, `{"AccountLimit":{"ConcurrentExecutions":%d,"UnreservedConcurrentExecutions":%d}}`, limit, unreserved)
		case r.Method == http.MethodPost && state == "":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack with id shop does not exist</Message></Error></ErrorResponse>`)
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>shop</StackName><StackStatus>%s</StackStatus><Parameters>%s</Parameters></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, state, parameters.String())
		default:
			t.Errorf("asked %s %s, which would change something", r.Method, r.URL)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CA_BUNDLE": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
}

// The first deployment of a new account, which has ten executions in all, is refused before anything is made, with
// what to do; what prod asks for by itself is not.
func TestWhatTheAccountLacksIsSaidBeforeAnythingIsMade(t *testing.T) {
	t.Chdir("../../..")
	for name, c := range map[string]struct {
		state             string
		limit, unreserved int
		parameters        []string
		refuses           bool
	}{
		"a new account":                         {"", 10, 10, nil, false},
		"a new account, and reserved":           {"", 10, 10, []string{"Shards=4", "ReserveConcurrency=yes"}, true},
		"reserved, with enough":                 {"", 1000, 1000, []string{"ReserveConcurrency=yes"}, false},
		"reserved, and just too little":         {"", 1000, 243, []string{"ReserveConcurrency=yes"}, true},
		"reserved, with just enough":            {"", 1000, 244, []string{"ReserveConcurrency=yes"}, false},
		"the rest of a deployment that failed":  {"ROLLBACK_COMPLETE", 1000, 1000, nil, true},
		"one that could not even be taken back": {"ROLLBACK_FAILED", 1000, 1000, nil, true},
		"an update that could not":              {"UPDATE_ROLLBACK_FAILED", 1000, 1000, nil, true},
		"one under way":                         {"UPDATE_IN_PROGRESS", 1000, 1000, nil, true},
		"a change set that nobody took":         {"REVIEW_IN_PROGRESS", 1000, 1000, nil, false},
		"payloads that go before their jobs":    {"", 1000, 1000, []string{"PayloadBucket=create", "RetentionDays=50"}, true},
		"payloads of jobs that stay for ever":   {"", 1000, 1000, []string{"PayloadBucket=create", "RetentionDays=0"}, true},
		"payloads that stay longer":             {"", 1000, 1000, []string{"PayloadBucket=create", "RetentionDays=50", "PayloadDays=67"}, false},
		"payloads as they are by themselves":    {"", 1000, 1000, []string{"PayloadBucket=create"}, false},
		"no payloads, whatever their days are":  {"", 1000, 1000, []string{"RetentionDays=50"}, false},
		"who may not ask":                       {"", 0, 0, []string{"ReserveConcurrency=yes"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			account(t, c.state, c.limit, c.unreserved)
			lacks, err := run(t.Context(), "shop", "prod", c.parameters)
			if err != nil || lacks != c.refuses {
				t.Errorf("got %t, %v, want %t", lacks, err, c.refuses)
			}
		})
	}
}

// What a deployment does not say stays as it is in the stack: sam deploy leaves it so. A plain deployment of a stack that has been given a
// bucket would else stop every function, with the days of samconfig.toml and those of the bucket.
func TestWhatADeploymentDoesNotSayIsAskedOfTheStack(t *testing.T) {
	t.Chdir("../../..")
	bucket := []string{"PayloadBucket=create", "PayloadDays=60", "RetentionDays=30"}
	for name, c := range map[string]struct {
		standing, parameters []string
		limit, unreserved    int
		refuses              bool
	}{
		"a bucket, and jobs that prod keeps longer":           {bucket, nil, 1000, 1000, true},
		"a bucket, whose days are given":                      {bucket, []string{"PayloadDays=107", "RetentionDays=90"}, 1000, 1000, false},
		"a bucket that is given up":                           {bucket, []string{"PayloadBucket=", "RetentionDays=90"}, 1000, 1000, false},
		"a bucket whose days the stack says":                  {[]string{"PayloadBucket=ours", "PayloadDays=200"}, nil, 1000, 1000, false},
		"jobs that the stack keeps longer":                    {[]string{"RetentionDays=90"}, []string{"PayloadBucket=create"}, 1000, 1000, true},
		"links, in a new account":                             {nil, []string{"CompletionLinks=yes"}, 10, 10, true},
		"links, that are reserved already":                    {[]string{"CompletionLinks=yes"}, nil, 1000, 100, false},
		"links, with just enough":                             {nil, []string{"CompletionLinks=yes"}, 1000, 105, false},
		"links, with just too little":                         {nil, []string{"CompletionLinks=yes"}, 1000, 104, true},
		"everything reserved already":                         {[]string{"ReserveConcurrency=yes"}, []string{"ReserveConcurrency=yes"}, 1000, 100, false},
		"everything reserved as it is, and links in addition": {[]string{"ReserveConcurrency=yes"}, []string{"CompletionLinks=yes", "ReserveConcurrency=yes"}, 1000, 104, true},
	} {
		t.Run(name, func(t *testing.T) {
			account(t, "UPDATE_COMPLETE", c.limit, c.unreserved, c.standing...)
			lacks, err := run(t.Context(), "shop", "prod", c.parameters)
			if err != nil || lacks != c.refuses {
				t.Errorf("got %t, %v, want %t", lacks, err, c.refuses)
			}
		})
	}
}

// The numbers come from the template, and the page says them.
func TestThePageSaysWhatIsReserved(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a, err := askedFor(read("template.yaml"), read("samconfig.toml"), "prod", []string{"ReserveConcurrency=yes"}, nil)
	if err != nil || a.used == 0 {
		t.Fatalf("got %+v, %v", a, err)
	}
	if says := fmt.Sprintf("reserves %d, and the account must keep %d", a.reserved, mustStay); !strings.Contains(read("docs/deploy.md"), says) {
		t.Errorf("docs/deploy.md does not say %q", says)
	}
	if b, err := askedFor(read("template.yaml"), read("samconfig.toml"), "prod", nil, nil); err != nil || b.reserved != 0 {
		t.Errorf("prod by itself reserves %d, %v, want nothing", b.reserved, err)
	}
	if _, err := askedFor(read("template.yaml"), read("samconfig.toml"), "prod", []string{"PayloadDays=many"}, nil); err == nil || !strings.Contains(err.Error(), "PayloadDays=many") {
		t.Errorf("got %v, want a number of days to be asked for", err)
	}
	if _, err := askedFor(read("template.yaml"), read("samconfig.toml"), "production", nil, nil); err == nil {
		t.Error("want an environment that is not there to be refused")
	}
}

// An agent that is a word in the list and nothing else runs, too.
func TestAnAgentWithoutARowIsReserved(t *testing.T) {
	template, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../../../samconfig.toml")
	if err != nil {
		t.Fatal(err)
	}
	reserves := func(template string) int {
		a, err := askedFor(template, string(config), "prod", []string{"ReserveConcurrency=yes"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.reserved
	}
	more := strings.Replace(string(template), "  Agents: &agents [", "  Agents: &agents [onemore, ", 1)
	if got, want := reserves(more), reserves(string(template))+10; got != want {
		t.Errorf("with an agent more it reserves %d, want %d", got, want)
	}
}

// What must be mended says how.
func TestALackSaysWhatToDo(t *testing.T) {
	for _, f := range append(lacksOfConcurrency(asked{reserved: 144, used: 142}, limit{10, 10}), lacksOfConcurrency(asked{used: 142}, limit{10, 10})...) {
		if !strings.Contains(f.text, "--quota-code L-B99A9384 --desired-value 1000") {
			t.Errorf("got %q, want the command that asks for more", f.text)
		}
	}
	if f := lacksOfState("shop", "ROLLBACK_FAILED"); len(f) != 1 || !strings.Contains(f[0].text, "make undeploy STACK=shop") {
		t.Errorf("got %v, want the command that deletes it", f)
	}
}

func TestATemplateOfTooManyResourcesIsRefused(t *testing.T) {
	template, err := os.ReadFile("../../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../../../samconfig.toml")
	if err != nil {
		t.Fatal(err)
	}
	for agents, refuses := range map[int]bool{0: false, 30: true} {
		var more strings.Builder
		for i := range agents {
			fmt.Fprintf(&more, "more%d, ", i)
		}
		a, err := askedFor(strings.Replace(string(template), "&agents [", "&agents ["+more.String(), 1), string(config), "prod", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(lacksOfTemplate(a)) > 0; got != refuses {
			t.Errorf("%d agents more, %d resources: refused %t, want %t", agents, a.resources, got, refuses)
		}
	}
}
