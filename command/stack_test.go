package command

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/stack"
)

// someAWS is an AWS that answers every request the same, and the environment that leads to it.
func someAWS(t *testing.T, status int, contentType, body string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "",
		"AWS_SESSION_TOKEN": "", "MAKEGOOD_STACK": "", stack.VarSubmitURL: "", stack.VarReadURL: "", stack.VarOperateURL: "",
	} {
		t.Setenv(name, value)
	}
}

// ask runs the command in this process.
func ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return askWith(t, "", args...)
}

// askWith runs it with something on standard input.
func askWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot("makegood", nil, nil)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(t.Context(), root, &errs)
	return code, out.String(), errs.String()
}

func queryError(code, message string) string {
	return fmt.Sprintf(`<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`, code, message)
}

// Whatever keeps a verb from a stack, it says what to do next, and prints nothing that a program could
// take for a result.
func TestAStackThatCannotBeAskedIsExplained(t *testing.T) {
	const xml, json = "text/xml", "application/json"
	// The environment says where the doors are: here, where all of AWS is.
	doors := map[string]string{stack.VarSubmitURL: "here", stack.VarReadURL: "here", stack.VarOperateURL: "here"}
	for name, c := range map[string]struct {
		status      int
		contentType string
		body        string
		environment map[string]string
		code        int
		want        string
	}{
		"no such stack": {
			400, xml, queryError("ValidationError", "Stack with id shop does not exist"), nil,
			codeUsage, "stack shop in eu-central-1: ", // and the advice below
		},
		"no such stack, advice":         {400, xml, queryError("ValidationError", "Stack with id shop does not exist"), nil, codeUsage, "is the name right? AWS_REGION"},
		"no access to CloudFormation":   {403, xml, queryError("AccessDenied", "not authorized to perform: cloudformation:DescribeStacks"), nil, codeFailed, "docs/doors.md lists the permissions"},
		"credentials that have run out": {403, xml, queryError("ExpiredToken", "The security token included in the request is expired"), nil, codeFailed, "log in again"},
		"credentials of nobody":         {403, xml, queryError("InvalidClientTokenId", "invalid"), nil, codeUsage, "AWS does not know the credentials"},
		"a stack of somebody else": {
			200, xml, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>shop</StackName></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
			nil, codeUsage, "want SubmitUrl, ReadUrl and OperateUrl",
		},
		"no region":               {200, xml, "", map[string]string{"AWS_REGION": ""}, codeUsage, "set AWS_REGION"},
		"no credentials":          {200, xml, "", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, codeUsage, "log in (aws sso login)"},
		"no policy for the door":  {403, json, `{"Message":"Forbidden"}`, doors, codeUsage, "want lambda:InvokeFunctionUrl and lambda:InvokeFunction on the function shop-"},
		"no such door":            {404, json, `{"Message":null}`, doors, codeUsage, "is the stack deployed to its end?"},
		"a door of its own words": {403, json, `{"error":"it is the door of another"}`, doors, codeUsage, "it is the door of another"},
	} {
		for _, verb := range [][]string{
			{"get", "a"}, {"cancel", "a", "--json"}, {"submit", "order"}, {"list", "--state", "Error"}, {"list", "--paused"}, {"publish", "../workflows/order/order.yaml"},
		} {
			t.Run(name+"/"+verb[0], func(t *testing.T) {
				someAWS(t, c.status, c.contentType, c.body)
				for name, value := range c.environment {
					if value == "here" {
						value = os.Getenv("AWS_ENDPOINT_URL")
					}
					t.Setenv(name, value)
				}
				code, stdout, stderr := ask(t, append(verb, "--stack", "shop")...)
				if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "localhost") {
					t.Errorf("got %d, %q, %q, want %d, nothing, and %q", code, stdout, stderr, c.code, c.want)
				}
			})
		}
	}
}

// The environment names a stack for all verbs; what is said on the command line overrides it.
func TestWhatIsSaidOverridesTheEnvironment(t *testing.T) {
	someAWS(t, 400, "text/xml", queryError("ValidationError", "Stack with id shop does not exist"))
	t.Setenv("MAKEGOOD_STACK", "shop")
	if code, _, stderr := ask(t, "get", "a"); code != codeUsage || !strings.Contains(stderr, "stack shop") {
		t.Errorf("got %d, %q, want %d and the stack of the environment", code, stderr, codeUsage)
	}
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer down.Close()
	if code, _, stderr := ask(t, "get", "a", "--addr", down.URL); code != codeFailed || strings.Contains(stderr, "stack shop") {
		t.Errorf("with --addr: got %d, %q, want %d and no stack", code, stderr, codeFailed)
	}
	if code, _, stderr := ask(t, "get", "a", "--addr", "127.0.0.1:1", "--stack", "shop"); code != codeUsage || !strings.Contains(stderr, "none of the others can be") {
		t.Errorf("with both: got %d, %q, want %d", code, stderr, codeUsage)
	}
}

// Who cannot be reached is named, with what to do next: a process, a stack, or one that has answered and is in trouble.
func TestWhoCannotBeReachedIsNamed(t *testing.T) {
	const process, deployed = "http://127.0.0.1:4777", "https://shop" + protocol.HostSuffix
	for _, c := range []struct {
		url    string
		status int
		want   string
	}{
		{process, 0, "cannot reach " + process + ": the cause\nis `makegood dev` running?"},
		{deployed, 0, "cannot reach " + deployed + ": the cause\nit is not known what became of the request"},
		{process, 503, process + " answered 503: the cause\nthe request may be made again without harm; the log of what answered says more"},
		{deployed, 500, deployed + " answered 500: the cause\nthe request may be made again without harm; the log of what answered says more"},
	} {
		var coded *exitError
		err := failed(newRoot("makegood", nil, nil), fmt.Errorf("get job j: %w", &api.UnreachableError{URL: c.url, Status: c.status, Err: errors.New("the cause")}))
		if !errors.As(err, &coded) || coded.code != codeFailed || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d: got %v, want code %d and %q", c.url, c.status, err, codeFailed, c.want)
		}
	}
}
