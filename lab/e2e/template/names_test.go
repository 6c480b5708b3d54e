package template

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
	"github.com/makegood-dev/makegood/workflows"
)

// lambdaSets are what Lambda sets beside the variables of the template.
func lambdaSets(function string) map[string]string {
	return map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_LAMBDA_FUNCTION_NAME": function,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
}

// Each handler is made from the variables that the template gives its function: what is missing, misspelt or
// not understood is said by the code that will read it there.
func TestEachFunctionStartsWithTheVariablesOfTheTemplate(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	whole := load(t, readFile(t, templateFile))
	for _, name := range whole.Of(functionKind) {
		variables := lambdaSets(name)
		maps.Copy(variables, whole.environment(name))
		if err := startFunction(t, variables); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// It is the code that says so: without the table it does not start.
		delete(variables, deployed.VarTable)
		if err := startFunction(t, variables); err == nil {
			t.Errorf("%s starts without %s", name, deployed.VarTable)
		}
	}
}

func startFunction(t *testing.T, variables map[string]string) error {
	getenv := func(name string) string { return variables[name] }
	for name, value := range variables {
		t.Setenv(name, value)
	}
	var err error
	switch name := variables["AWS_LAMBDA_FUNCTION_NAME"]; {
	case variables[deployed.VarDoor] != "":
		_, err = deployed.Door(t.Context(), getenv, workflows.Files)
	case name == "Scheduler":
		_, err = deployed.Scheduler(t.Context(), getenv, nil, nil)
	case name == "Supervisor":
		_, err = deployed.Supervisor(t.Context(), getenv)
	default:
		_, err = deployed.Agent(t.Context(), getenv, workflows.Agents(getenv))
	}
	return err
}

// constants returns the values of the string constants of a file whose names begin so.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ := strconv.Unquote(literal.Value)
			values = append(values, value)
		}
		return true
	})
	return values
}

// A variable that no code reads would look as if it did something.
func TestTheTemplateSetsTheVariablesThatTheCodeReads(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	set := map[string]bool{}
	for _, name := range whole.Of(functionKind) {
		for variable := range whole.environment(name) {
			set[variable] = true
		}
	}
	read := map[string]bool{}
	for _, variable := range append(constants(t, "../../../internal/deployed/config.go", "Var"), constants(t, "../../../workflows/workflows.go", "shopVariable")...) {
		read[variable] = true
	}
	// The prefix says what this one would, and a loop cannot write a list.
	delete(read, deployed.VarQueues)
	// Those of OpenTelemetry are more than the template sets.
	for _, variable := range regexp.MustCompile(`OTEL_[A-Z_]+[A-Z]`).FindAllString(string(readFile(t, "../../../internal/otlp/environment.go")), -1) {
		read[variable] = read[variable] || set[variable]
	}
	maps.DeleteFunc(read, func(_ string, is bool) bool { return !is })
	if !reflect.DeepEqual(set, read) || len(read) < 10 {
		t.Errorf("got %v\nwant %v", slices.Sorted(maps.Keys(set)), slices.Sorted(maps.Keys(read)))
	}
}

func TestEachAgentOfTheCodeHasAFunctionAndAQueue(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	want := []string{"http"}
	for _, a := range workflows.Agents(func(string) string { return "" }) {
		want = append(want, a.Name())
	}
	slices.Sort(want)
	if got := whole.agents(); !slices.Equal(got, want) {
		t.Errorf("got the agents %v, want %v", got, want)
	}
	// A workflow with another is refused; an agent that runs elsewhere would be named here, and in no loop.
	listed := strings.Split(whole.environment("Scheduler")[deployed.VarAgents], ",")
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("the functions know of the agents %v, want %v", listed, want)
	}
	queues := map[string]string{"EventsQueue": deployed.EventsQueue, "SubmissionsQueue": deployed.SubmissionsQueue, "QuarantineQueue": deployed.QuarantineQueue}
	for _, agent := range want {
		queues[agent+"TasksQueue"] = deployed.TasksQueue(agent)
	}
	prefix := whole.environment("Scheduler")[deployed.VarQueuePrefix]
	for name, queue := range queues {
		if got := stackfile.Text(whole.Property(name, "QueueName")); got != prefix+queue {
			t.Errorf("%s: got the name %q, want %q", name, got, prefix+queue)
		}
	}
}

// tableOf writes a table's keys and indexes as lines, so that a difference can be read.
func tableOf(attributes, keys, indexes []string) string {
	slices.Sort(attributes)
	slices.Sort(indexes)
	return strings.Join(slices.Concat(attributes, keys, indexes), "\n")
}

func keysOf(schema []types.KeySchemaElement) []string {
	var all []string
	for _, k := range schema {
		all = append(all, fmt.Sprintf("%s %s", aws.ToString(k.AttributeName), k.KeyType))
	}
	return all
}

func keysIn(schema any) []string {
	var all []string
	for _, k := range stackfile.List(schema) {
		all = append(all, stackfile.Text(stackfile.At(k, "AttributeName"))+" "+stackfile.Text(stackfile.At(k, "KeyType")))
	}
	return all
}

func TestTheTableIsThatOfTheStore(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	index := whole.environment("Supervisor")[deployed.VarIndex]
	schema := dynamostore.Schema("table", index)
	var attributes, indexes []string
	for _, a := range schema.AttributeDefinitions {
		attributes = append(attributes, fmt.Sprintf("%s: %s", aws.ToString(a.AttributeName), a.AttributeType))
	}
	for _, i := range schema.GlobalSecondaryIndexes {
		indexes = append(indexes, fmt.Sprint(aws.ToString(i.IndexName), keysOf(i.KeySchema), i.Projection.ProjectionType))
	}
	want := tableOf(attributes, keysOf(schema.KeySchema), indexes)
	attributes, indexes = nil, nil
	for _, a := range stackfile.List(whole.Property("Table", "AttributeDefinitions")) {
		attributes = append(attributes, stackfile.Text(stackfile.At(a, "AttributeName"))+": "+stackfile.Text(stackfile.At(a, "AttributeType")))
	}
	for _, i := range stackfile.List(whole.Property("Table", "GlobalSecondaryIndexes")) {
		indexes = append(indexes, fmt.Sprint(stackfile.Text(stackfile.At(i, "IndexName")), keysIn(stackfile.At(i, "KeySchema")), stackfile.Text(stackfile.At(i, "Projection", "ProjectionType"))))
	}
	if got := tableOf(attributes, keysIn(whole.Property("Table", "KeySchema")), indexes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := stackfile.Text(whole.Property("Table", "TimeToLiveSpecification", "AttributeName")); got != dynamostore.ExpiryAttribute {
		t.Errorf("items expire by %q, want %q", got, dynamostore.ExpiryAttribute)
	}
}

func TestAlarmsAreOnMetricsThatTheFunctionsWrite(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	alarms := 0
	for _, name := range whole.Of(alarmKind) {
		if stackfile.Text(whole.Property(name, "Namespace")) != deployed.MetricsNamespace {
			continue
		}
		alarms++
		if metric := stackfile.Text(whole.Property(name, "MetricName")); !slices.Contains(deployed.Metrics(), metric) {
			t.Errorf("%s: no function writes %q; they write %v", name, metric, deployed.Metrics())
		}
		want := map[string]any{"Name": deployed.DimensionStack, "Value": whole.environment("Supervisor")[deployed.VarStack]}
		if got := stackfile.List(whole.Property(name, "Dimensions")); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: got the dimensions %v, want %v", name, got, want)
		}
	}
	if alarms < 2 {
		t.Errorf("got %d alarms on our own metrics, want NoSweep and JobsInError at least", alarms)
	}
}

// Each door of the code has a function and a URL that asks IAM, and the outputs say where the client finds it.
func TestEachDoorOfTheCodeHasAURLThatAsksIAM(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	outputs := map[httpapi.Door]string{httpapi.Submit: protocol.SubmitOutput, httpapi.Read: protocol.ReadOutput, httpapi.Operate: protocol.OperateOutput}
	for _, door := range httpapi.Doors() {
		name := string(door) + "Door"
		if got := whole.environment(name)[deployed.VarDoor]; got != string(door) {
			t.Errorf("%s: got the door %q, want %s", name, got, door)
		}
		// Policies and messages name it so.
		if got, want := stackfile.Text(whole.Property(name, "FunctionName")), "${AWS::StackName}-"+string(door); got != want {
			t.Errorf("%s: got the name %q, want %q", name, got, want)
		}
		if got, want := stackfile.Text(stackfile.At(whole.Outputs, outputs[door], "Value")), "${"+name+"Url.FunctionUrl}"; got != want {
			t.Errorf("output %s: got %q, want %q", outputs[door], got, want)
		}
		if got, want := stackfile.Text(whole.Property(name+"Url", "TargetFunctionArn")), "${"+name+".Arn}"; got != want {
			t.Errorf("%sUrl leads to %q, want %q", name, got, want)
		}
	}
	if got := stackfile.Text(stackfile.At(whole.Outputs, protocol.CompleteOutput, "Value")); got != "${"+publicURL+".FunctionUrl}" {
		t.Errorf("output %s: got %q", protocol.CompleteOutput, got)
	}
	if got := len(whole.Of("AWS::Lambda::Url")); got != len(httpapi.Doors())+1 {
		t.Errorf("got %d function URLs, want one a door, and that of completion tokens", got)
	}
}

// The dashboard is JSON, and shows metrics that the functions write, the times with p50 and p99.
func TestTheDashboardShowsMetricsThatTheFunctionsWrite(t *testing.T) {
	whole := string(readFile(t, templateFile))
	_, after, _ := strings.Cut(whole, "DashboardBody: !Sub\n        - |\n")
	body, _, found := strings.Cut(after, "        - {TableName:")
	if !found || !json.Valid([]byte(body)) {
		t.Fatalf("got the dashboard %s, want JSON", body)
	}
	shown := map[string]bool{}
	for _, match := range regexp.MustCompile(`\["Makegood", "(\w+)", "Stack", "\$\{AWS::StackName\}"(?:, \{"stat": "(p\d+)"\})?\]`).FindAllStringSubmatch(body, -1) {
		shown[match[1]+" "+match[2]] = true
		if !slices.Contains(deployed.Metrics(), match[1]) {
			t.Errorf("no function writes %s", match[1])
		}
	}
	for _, name := range []string{deployed.MetricQueueTime, deployed.MetricAttemptTime, deployed.MetricStepTime, deployed.MetricJobTime, deployed.MetricLateness, deployed.MetricSweepTime} {
		if !shown[name+" p50"] || !shown[name+" p99"] {
			t.Errorf("%s is not shown with p50 and p99", name)
		}
		if !strings.Contains(body, `MetricName=\"`+name+`\"`) {
			t.Errorf("the widget of all counts does not leave out %s", name)
		}
	}
}
