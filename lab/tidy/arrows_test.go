package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/makegood-dev/makegood"

// The libraries of others, by what they are for us.
const (
	lambdaEvents = "github.com/aws/aws-lambda-go/events"
	lambda       = "github.com/aws/aws-lambda-go"
	awsSDK       = "github.com/aws/aws-sdk-go-v2"
	smithy       = "github.com/aws/smithy-go"
	rapid        = "pgregory.net/rapid"
	otelAPI      = "go.opentelemetry.io/otel"
	otlp         = "go.opentelemetry.io/proto/otlp"
)

// arrow says what a package may import. Tests are free: they bring together what is apart.
type arrow struct {
	// from is a folder; with "/*" behind it every folder below.
	from string
	// to are our own packages: "." is the root package, "*" every library of ours, "x/*" all below x.
	to []string
	// vendors are packages of others, each with all that is below it.
	vendors []string
}

// arrows is the law. The most exact row holds. A new row is a decision; say why in the commit.
var arrows = []arrow{
	// The words, the core, and what both floors of the building may use.
	{".", nil, nil},
	{constants, nil, nil},
	// What follows from the words, which all floors need and no user's program calls.
	{consequences, []string{"."}, nil},
	// What the engine keeps of a job, and tells itself.
	{"internal/job", []string{"."}, nil},
	{"internal/machine", []string{".", "internal/job"}, nil},
	{"internal/canonical", nil, nil},
	// How deep a payload may be nested, canonical says.
	{"internal/wire", []string{".", "internal/job", "internal/canonical"}, nil},
	// A log that holds back what repeats; it knows no warning of ours.
	{"internal/quiet", nil, nil},
	// Which trace and spans a job has: ids made from what it knows of itself. Spans and metrics of what the Scheduler
	// says has happened. OpenTelemetry's API, and not its SDK.
	{"internal/telemetry", []string{".", "internal/job"}, []string{otelAPI}},
	{"telemetry", []string{"internal/telemetry"}, []string{otelAPI}},
	// The variables of OpenTelemetry, and a sender for a process that is frozen between invocations: the SDK's for OTLP
	// links gRPC.
	{"internal/otlp", []string{"telemetry"}, []string{otelAPI, otlp, "google.golang.org/protobuf"}},
	{"internal/testkit/spansink", nil, []string{otlp, "google.golang.org/protobuf"}},
	{"telemetry/export", []string{"telemetry", "internal/otlp"}, []string{otelAPI, "github.com/prometheus/client_golang"}},
	// Waiting, and running totals of anything.
	{"internal/pause", nil, nil},
	// Text of others: shown so that it draws nothing, its nearest name, the size of a regular expression.
	{"internal/plain", nil, nil},
	{"internal/tally", nil, nil},
	{"internal/crew", nil, nil},
	{"internal/spend", []string{"internal/job"}, nil},
	// What the page asks of many jobs, and goes on with after a restart: a client, and files of its own.
	{"internal/bulk", []string{".", "api", "internal/pause"}, []string{"github.com/gofrs/flock"}},
	// When a schedule fires: times, and no clock.
	{"internal/schedule", []string{"."}, nil},

	// Ports know the words; an adapter knows its port, the wire and its vendor; suites know the port.
	{"internal/store", []string{".", "internal/job"}, nil},
	// In memory: it knows from the stored format only which jobs a release must leave alone.
	{"internal/store/memstore", []string{".", "internal/job", "internal/store", "internal/store/jobformat"}, nil},
	// Compares each store with the one in memory.
	{"internal/store/storetest", []string{".", "internal/job", "internal/spend", "internal/store", "internal/store/jobformat", "internal/store/memstore", "internal/wire"}, []string{rapid, "github.com/anishathalye/porcupine"}},
	{"internal/store/faultstore", []string{".", "internal/job", "internal/store"}, nil},
	// One encoding of the stored job, by hand: of protobuf it needs how numbers and lengths are written, and no more.
	{"internal/store/jobformat", []string{".", "internal/job", "internal/store"}, []string{"google.golang.org/protobuf/encoding/protowire"}},
	{"internal/store/sqlitestore", []string{".", "internal/job", "internal/store", "internal/store/jobformat"}, []string{"modernc.org/sqlite", "github.com/gofrs/flock"}},
	{"internal/store/dynamostore", []string{".", "internal/job", "internal/store", "internal/store/jobformat", "internal/pause", "internal/spend"}, []string{awsSDK, smithy}},
	// Large payloads: bytes of a job, and nothing of jobs but their ids.
	{"internal/payload", []string{"."}, nil},
	{"internal/payload/*", []string{".", "internal/payload"}, nil},
	{"internal/payload/s3payload", []string{".", "internal/payload"}, []string{awsSDK, smithy}},
	{"internal/queue", []string{"."}, []string{lambdaEvents}},
	{"internal/queue/queuetest", []string{".", "internal/queue"}, []string{lambdaEvents, rapid}},
	{"internal/queue/faultqueue", []string{".", "internal/queue"}, []string{lambdaEvents}},
	{"internal/queue/localqueue", []string{".", "internal/crew", "internal/queue", "internal/pause"}, []string{lambdaEvents}},
	{"internal/queue/together", []string{"internal/queue", "internal/limits"}, nil},
	{"internal/queue/sqsqueue", []string{".", "internal/queue", "internal/queue/together", "internal/pause", "internal/spend"}, []string{lambdaEvents, awsSDK, smithy}},
	{"internal/notify", []string{".", "internal/job", "internal/plain"}, nil},
	// Every change, outwards: it knows no job, and whoever is told nothing of it.
	{"internal/changes", []string{".", "internal/pause"}, nil},
	{"internal/notify/*", []string{".", "internal/changes", "internal/notify", "internal/wire"}, []string{awsSDK, smithy}},
	{"internal/sqsbatch", []string{".", "internal/crew", "internal/job", "internal/queue", "internal/spend", "internal/wire"}, []string{lambdaEvents}},

	// What was put away, for people: it sends and deletes messages, and decides nothing about jobs.
	{"internal/putaway", []string{".", "api", "internal/job", "internal/queue", "internal/sqsbatch", "internal/store", "internal/wire"}, []string{lambdaEvents}},

	// What is read from people.
	// Of the http agent it needs the rules of its with, and nothing that sends.
	// The JSON Schema of an input, and the only one who knows the library for it.
	{"internal/inputschema", []string{".", "internal/plain"}, []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	{"internal/workflowfile", []string{".", "internal/job", "internal/canonical", "internal/inputschema", "internal/httpagent/httprules", "internal/plain", "internal/schedule", "internal/workflowfile/jq"}, []string{"go.yaml.in/yaml/v3", "github.com/itchyny/gojq"}},
	{"internal/workflowfile/schema", []string{"internal/workflowfile"}, nil}, // the table of fields, from which it draws
	{"internal/workflowfile/*", []string{".", "internal/canonical", "internal/plain"}, []string{"github.com/itchyny/gojq"}},

	// The three of the pattern. None knows an adapter; the Supervisor does not know the core.
	{"internal/scheduler", []string{
		"internal/crew", "internal/secret",
		"internal/payload",
		".", "internal/job", "internal/machine", "internal/canonical", "internal/workflowfile", "internal/store", "internal/queue",
		"internal/changes", "internal/notify", "internal/pause", "internal/wire", "internal/spend", "internal/sqsbatch", "internal/tally", "internal/telemetry",
	}, []string{lambdaEvents}},
	// The only writer of schedules: it fires by submitting, and decides nothing about jobs.
	{"internal/timetable", []string{
		".", "internal/job", "internal/schedule", "internal/scheduler", "internal/store", "internal/canonical", "internal/workflowfile", "internal/tally",
	}, nil},
	// Pausing agents and workflows as a whole: it tells the Scheduler of jobs by messages, as the Supervisor does.
	{"internal/gate", []string{".", "internal/job", "internal/machine", "internal/store", "internal/queue", "internal/wire"}, nil},
	{"internal/holds", []string{".", "internal/job", "internal/store", "internal/queue", "internal/wire", "internal/workflowfile"}, []string{lambdaEvents}},
	{"internal/supervisor", []string{".", "internal/job", "internal/store", "internal/queue", "internal/wire", "internal/pause", "internal/tally"}, []string{lambdaEvents}},
	// The context of an attempt, which the runners of agents and package agent share.
	{"internal/agentctx", []string{"."}, nil},
	{"agent", []string{".", "internal/agentctx"}, nil},
	// A fence is a write of an agent's own that rests on its claim, so these know how claims are kept. What both say of an effect is beside.
	{"internal/fenced", []string{".", "agent", "internal/canonical", "internal/agentctx"}, nil},
	{"agent/sqlitefence", []string{".", "agent", "internal/fenced", "internal/store", "internal/store/sqlitestore"}, nil},
	{"agent/dynamofence", []string{".", "agent", "internal/fenced", "internal/store", "internal/store/dynamostore", "internal/pause"}, []string{awsSDK, smithy}},
	// Secrets are put in by who runs agents, and by nobody else.
	{"internal/secret", []string{".", "agent"}, nil},
	{"internal/agentrun", []string{
		"internal/agentctx", "internal/crew",
		"internal/payload", "internal/canonical", "internal/pause",
		".", "internal/job", "agent", "internal/secret", "internal/spend", "internal/store", "internal/queue", "internal/wire", "internal/sqsbatch", "internal/tally", "internal/telemetry",
	}, []string{lambdaEvents, "github.com/cenkalti/backoff/v5"}},
	// The agents outside: what agentrun does for those here, but for the work.
	{"internal/agentdoor", []string{
		"internal/payload",
		".", "internal/job", "internal/machine", "internal/store", "internal/queue", "internal/wire",
	}, []string{lambdaEvents}},
	{"internal/httpagent", []string{".", "agent", "internal/httpagent/httprules", "internal/agentctx"}, nil},
	// What a request must be, for the agent and for what reads workflows.
	{"internal/httpagent/httprules", nil, nil},

	// How large a stack must be: a table of counts, and arithmetic.
	{"internal/sizing", []string{"."}, nil},

	// What a project of a team's own begins with: text, and the template compared as text. It runs nothing of ours.
	{"internal/scaffold", []string{"."}, []string{"go.yaml.in/yaml/v3"}},

	// What makegood dev serves to a newcomer: the order and its shop, in a folder. It knows no engine.
	{"internal/sample", []string{".", "agent", "workflows/order", "internal/sample/services"}, nil},
	// The shop's services. Those who run the shop name it: "*" does not stand for it.
	{"internal/sample/services", []string{"."}, nil},

	// What wires it.
	{"internal/embedded", []string{"*"}, []string{lambdaEvents}},
	{"internal/batch", []string{
		".", "internal/job", "agent", "internal/canonical", "internal/embedded", "internal/scheduler", "internal/store", "internal/workflowfile", "internal/workflowfile/jq",
	}, []string{"github.com/itchyny/gojq"}},
	// The AWS SDK's clients are made here, once, for all functions.
	{"internal/deployed", []string{"*"}, []string{lambda, awsSDK, smithy, otelAPI}},
	// A middleware of the SDK, for what makes clients: it knows AWS's rules of what is billed, and nothing of ours.
	{"lab/costmeter", nil, []string{awsSDK, smithy}},
	// The command's --stack: a client of a stack's doors, or help where there is none, and of its queues, as the caller.
	{"internal/stack", []string{"client", "client/doors", "internal/queue/sqsqueue", "internal/protocol"}, []string{awsSDK, smithy}},
	// How a job looks to people, and the API that shows it; the JSON's types are the client's, once.
	{"internal/view", []string{".", "internal/job", "internal/store", "internal/holds", "internal/workflowfile", "api", "internal/protocol"}, nil},
	// Steps as pictures: it knows the words, and neither files nor engines.
	{"internal/graph", []string{"."}, nil},
	// When what was done of a job, of what anybody can read of it.
	{"internal/timeline", []string{"."}, nil},
	// What jobs can be found by: a table, for the API and the command.
	{"internal/filter", []string{".", "internal/plain"}, nil},
	// What comes by the events queue, led to those whom it is for.
	{"internal/router", []string{"internal/queue", "internal/store", "internal/wire"}, []string{lambdaEvents}},
	// The answers to what is asked of jobs, once, for the API, the engine, the page and the test kit.
	{"internal/control", []string{
		".", "internal/job", "api", "internal/canonical", "internal/holds", "internal/machine", "internal/payload", "internal/protocol", "internal/scheduler",
		"internal/sealed", "internal/store", "internal/telemetry", "internal/timetable", "internal/view", "internal/wire", "internal/workflowfile",
	}, nil},
	{"internal/httpapi", []string{
		".", "internal/job", "api", "internal/agentdoor", "internal/canonical", "internal/changes", "internal/control", "internal/filter", "internal/machine",
		"internal/origin", "internal/payload", "internal/plain", "internal/protocol", "internal/scheduler", "internal/store", "internal/telemetry", "internal/view",
		"internal/wire", "internal/workflowfile",
	}, nil},
	// Whose requests are let in: the API's and the page's one rule.
	{"internal/origin", nil, nil},
	{"lab/docs", nil, nil},
	{"lab/tidy", nil, nil},
	{"lab/bench", nil, nil},
	{"internal/backup", []string{"internal/embedded", "internal/store/sqlitestore"}, nil},
	{"internal/login", []string{".", "internal/origin"}, nil},
	// The page: it knows the words of api, and nothing below them.
	{"internal/page", []string{".", "api", "internal/filter", "internal/graph", "internal/inputschema", "internal/origin", "internal/plain", "internal/bulk", "internal/timeline", "internal/workflowfile", "internal/protocol"}, nil},
	{"lab/sim", []string{"*", "lab/oracle"}, []string{lambdaEvents, rapid, "google.golang.org/protobuf/encoding/protowire"}},
	// Runs what is shipped, and the contract of the store in its own words: no adapter.
	{"lab/modelcheck", []string{".", "internal/gate", "internal/job", "internal/machine", "internal/queue", "internal/testkit/layers", "internal/store", "internal/store/memstore", "internal/wire"}, nil},
	// What a layer of proof plays is read from the jobs that it has.
	{"internal/testkit/layers", []string{".", "internal/job", "internal/testkit/proof"}, nil},
	// The page docs/proof.md, and wrong versions of the others for the tests of the two above.
	{"internal/testkit/proof", nil, nil},
	{"internal/testkit/seed", nil, []string{rapid}},
	{"internal/testkit/address", nil, nil},
	{"internal/testkit/leaks", nil, []string{"go.uber.org/goleak"}},
	// A second reading of the docs: what it shared with the core would be wrong in both.
	{"lab/oracle", []string{".", "internal/job"}, nil},
	// The shipped store, queue and Supervisor at a scale that no machine here has; an engine for a day, or an hour.
	{"lab/scale", []string{"*"}, []string{awsSDK}},
	{"lab/soak", []string{".", "agent", "api", "engine"}, nil},
	{"lab/wide", []string{".", "agent", "engine"}, nil},
	// Has an engine under load, and asks it for pages as a browser does; it fills a file with a million jobs itself.
	{"lab/pagesoak", []string{".", "agent", "api", "client", "engine"}, []string{"modernc.org/sqlite"}},
	// A command that makes wrong versions of others and runs go test over them; nobody can import it.
	{"lab/mutants", nil, nil},
	// A command that feeds the shipped handlers; nobody can import it.
	{"lab/fuzz", []string{"*"}, []string{lambdaEvents}},
	// A command that makes archives of the command: it runs go build, and writes the OpenAPI document beside them.
	{"lab/release", []string{"internal/httpapi"}, nil},
	// What Lambda does, for tests and examples: no package of ours stands below it, and none but they import it.
	{"internal/testkit/functionurl", nil, []string{lambdaEvents, awsSDK}},
	{"lab/testkit/lambdahost", []string{"internal/pause", "internal/testkit/functionurl"}, []string{lambdaEvents, awsSDK}},
	// What CloudFormation makes of the template, and what IAM makes of a request: they read a file, and know nothing of ours.
	{"lab/testkit/stackfile", []string{"localstack"}, []string{"go.yaml.in/yaml/v3"}},
	{"lab/testkit/iam", []string{"lab/testkit/stackfile"}, []string{awsSDK}},
	{"internal/testkit/standin", nil, []string{awsSDK, smithy}},
	{"lab/testkit/localdoors", []string{"client", "client/doors", "internal/testkit/functionurl"}, []string{awsSDK}},
	{"lab/testkit/docker", nil, nil},
	{"lab/thief", []string{"lab/testkit/iam"}, []string{awsSDK, smithy}},
	{"lab/tidy/*", nil, nil},
	// The words on the wire: a leaf, so a server, a client and a folder share them.
	{"api", []string{".", "internal/sealed"}, nil},
	{"internal/sealed", nil, nil},
	// What clients and servers of the API share, and no user calls.
	{"internal/protocol", []string{".", "api"}, nil},
	// Of payloads it needs how what is read and written is counted, hashed and checked, and how a line that breaks is healed.
	{"client", []string{".", "api", "internal/sealed", "internal/payload", "internal/payload/transfer", "internal/protocol", "internal/telemetry"}, []string{"github.com/cenkalti/backoff/v5"}},
	// The same client, its requests signed: it knows AWS, and no more of us than a client does.
	{"client/doors", []string{"client", "internal/protocol"}, []string{awsSDK}},
	// The jobs of a folder, read where an engine keeps them.
	{"engine/folder", []string{
		".", "internal/job", "api", "internal/control", "internal/embedded", "internal/putaway", "internal/scheduler", "internal/store/sqlitestore", "internal/view",
		"internal/workflowfile",
	}, nil},
	// A submission in the caller's own transaction is a write to the store, so these know its adapter.
	{"client/sqlitetx", []string{".", "api", "internal/scheduler", "internal/store", "internal/store/sqlitestore", "internal/telemetry", "internal/workflowfile"}, nil},
	{"client/dynamotx", []string{".", "internal/job", "api", "internal/scheduler", "internal/spend", "internal/store", "internal/store/dynamostore", "internal/telemetry", "internal/wire", "internal/workflowfile"}, []string{awsSDK}},
	// Its queues stand between an engine and those of internal/queue, and take what they take.
	{"makegoodtest", []string{"*"}, []string{lambdaEvents}},
	// It is all that the container image holds, so it brings the roots for https.
	{"cmd/makegood", []string{"command", "workflows"}, []string{"golang.org/x/crypto/x509roots/fallback"}},
	{"command", []string{"*", "workflows", "workflows/order"}, []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/schollz/progressbar/v3", "golang.org/x/term", lambdaEvents, awsSDK,
	}},
	{"engine", []string{
		".", "agent", "api", "internal/agentrun", "internal/control", "internal/embedded", "internal/httpagent", "internal/httpapi", "internal/job",
		"internal/notify", "internal/notify/groupnotify", "internal/notify/webhook", "internal/page", "internal/bulk", "internal/workflowfile", "telemetry",
	}, nil},
	{"onlambda", []string{"agent", "internal/deployed"}, []string{lambda}},
	// The agents' side of the door: it says what agentdoor hears, and runs what agentrun runs.
	{"onhttp", []string{
		"internal/payload", "internal/payload/transfer",
		".", "agent", "internal/agentdoor", "internal/agentrun", "internal/job", "internal/pause", "internal/queue", "internal/quiet", "internal/secret", "internal/store", "internal/wire",
	}, nil},
	{"onqueue", []string{
		".", "agent", "internal/agentrun", "internal/deployed", "internal/pause", "internal/queue", "internal/sqsbatch", "internal/stack",
	}, []string{lambdaEvents}},
	{"functions/*", []string{"*", "workflows", "workflows/order"}, []string{lambda, awsSDK, smithy}},

	// The importer, a module of its own: no package of the product imports it.
	// The translation of a state machine: texts in, texts out.
	{"importer/internal/asl", []string{".", "internal/workflowfile"}, []string{"go.yaml.in/yaml/v3"}},
	{"importer/internal/asl/survey", []string{"importer/internal/asl"}, nil},
	{"importer/cmd/makegood-import", []string{".", "importer/internal/asl", "internal/plain", "internal/scaffold"}, []string{"github.com/spf13/cobra"}},

	// What stands for our users' code: the public packages, as they have them.
	{"workflows", []string{".", "agent", "workflows/hello", "workflows/order"}, nil},
	{"workflows/*", []string{".", "agent"}, nil},
	{"examples/*", []string{".", "agent", "api", "client", "engine", "makegoodtest", "workflows", "workflows/order", "examples/travel/*"}, []string{
		"github.com/schollz/progressbar/v3", "golang.org/x/term",
	}},
	// The shop as a process, and what is shown with it.
	{"examples/lines", []string{"agent", "command"}, nil},
	{"examples/shop", []string{"internal/sample/services"}, nil},
	{"examples/repair", []string{".", "api", "client", "workflows/order", "internal/sample/services"}, nil},
	{"examples/ledger", []string{".", "agent", "agent/sqlitefence", "api", "client", "engine", "onhttp"}, []string{"modernc.org/sqlite"}},
	// A stack on a stand-in, and the command that is asked of it.
	{"lab/e2e/money", []string{".", "agent", "command", "internal/testkit/standin", "lab/e2e/processes"}, nil},
	// Reads the jobs from the store's file, as a person's tools would who does not trust the command.
	{"examples/demo", []string{".", "internal/job", "workflows/order", "internal/sample/services", "internal/embedded", "internal/store/sqlitestore"}, nil},
	// Saved events of the functions, made by what reads and writes messages, and a command that runs the functions
	// on them: it stands where the tests of lab/e2e stand.
	{"lab/e2e/events", []string{"*", "lab/testkit/*", "workflows/order", "internal/sample/services"}, []string{lambdaEvents, awsSDK}},
	// The template for stand-ins that know no loops.
	{"localstack", nil, []string{"go.yaml.in/yaml/v3"}},
	{"localstack/*", []string{"localstack"}, nil},
	{"lab/e2e", []string{"*", "lab/testkit/*", "workflows", "workflows/order", "internal/sample/services", "lab/e2e/*"}, []string{lambda, awsSDK, smithy}},
	// Drives the page: the driver is no business of anybody else.
	{"lab/e2e/browser", []string{".", "agent", "api", "client", "engine", "lab/pagesoak", "onhttp"}, []string{"github.com/chromedp"}},
	{"lab/e2e/*", []string{"*", "lab/testkit/*", "workflows", "workflows/order", "internal/sample/services", "examples/travel/agency", "lab/costmeter", "lab/e2e/*"}, []string{lambda, awsSDK, smithy}},
}

// constants is the folder that every package may import: it has limits and the rules of names and texts, and imports
// nothing of ours. consequences is the folder that every package but these two may import: it imports nothing else.
const (
	constants    = "internal/limits"
	consequences = "internal/domain"
)

// rowOf returns the row for a folder.
func rowOf(dir string) (arrow, bool) {
	best, found := arrow{}, false
	for _, a := range arrows {
		below, wild := strings.CutSuffix(a.from, "*")
		fits := a.from == dir || wild && strings.HasPrefix(dir, below)
		if fits && (!found || len(a.from) > len(best.from) || a.from == dir) {
			best, found = a, true
		}
		if a.from == dir {
			break
		}
	}
	return best, found
}

func (a arrow) allowsOurs(to string) bool {
	return slices.ContainsFunc(a.to, func(t string) bool {
		below, wild := strings.CutSuffix(t, "*")
		return t == to || t == "*" && isLibrary(to) || wild && below != "" && strings.HasPrefix(to, below)
	})
}

func (a arrow) allowsVendor(name string) bool {
	return slices.ContainsFunc(a.vendors, func(v string) bool { return within(name, v) })
}

// within reports whether an import path is that of a folder or below it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// imported is one import of a file.
type imported struct {
	name string // as written
	ours string // the folder, if it is one of ours; "." is the root package
	at   func(format string, args ...any) string
}

func imports(s source) []imported {
	var all []imported
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(fmt.Sprintf("tidy: %s: import %s: %v", s.path, spec.Path.Value, err))
		}
		i := imported{name: name, at: func(format string, args ...any) string { return s.at(spec.Pos(), format, args...) }}
		if name == module {
			i.ours = "."
		} else if below, ok := strings.CutPrefix(name, module+"/"); ok {
			i.ours = below
		}
		all = append(all, i)
	}
	return all
}

// isStandard reports whether an import is of the standard library.
func (i imported) isStandard() bool {
	first, _, _ := strings.Cut(i.name, "/")
	return i.ours == "" && !strings.Contains(first, ".")
}

func checkArrows(sources []source) []string {
	var found []string
	for _, s := range ours(sources) {
		row, known := rowOf(s.dir())
		if !known {
			found = append(found, fmt.Sprintf("%s: a package without a row in the table of arrows (lab/tidy)", s.path))
			continue
		}
		for _, i := range imports(s) {
			switch {
			case i.isStandard() && i.name != "C" && i.name != "unsafe":
			case i.ours == constants:
			case i.ours == consequences && s.dir() != "." && s.dir() != constants:
			case i.ours != "" && row.allowsOurs(i.ours):
			case i.ours == "" && row.allowsVendor(i.name):
			default:
				found = append(found, i.at("%s may not import %s: no such arrow in the table (lab/tidy)", s.dir(), i.name))
			}
		}
	}
	return found
}

// checkReach holds what no row may say: the Supervisor does not reach the core by any way round.
func checkReach(sources []source) []string {
	direct := map[string]map[string]bool{}
	for _, s := range ours(sources) {
		for _, i := range imports(s) {
			if i.ours == "" {
				continue
			}
			if direct[s.dir()] == nil {
				direct[s.dir()] = map[string]bool{}
			}
			direct[s.dir()][i.ours] = true
		}
	}
	ways := map[string]string{"internal/supervisor": "internal/supervisor"}
	for queue := []string{"internal/supervisor"}; len(queue) > 0; queue = queue[1:] {
		for _, next := range slices.Sorted(maps.Keys(direct[queue[0]])) {
			if ways[next] == "" {
				ways[next] = ways[queue[0]] + " -> " + next
				queue = append(queue, next)
			}
		}
	}
	if way := ways["internal/machine"]; way != "" {
		return []string{"the Supervisor reaches the core: " + way}
	}
	return nil
}

func checkAWS(sources []source) []string {
	var found []string
	for _, s := range goFiles(sources) {
		allowed := slices.ContainsFunc(awsFolders, func(f string) bool { return strings.HasPrefix(s.dir()+"/", f) })
		for _, i := range imports(s) {
			if within(i.name, awsSDK) && !allowed {
				found = append(found, i.at("the AWS SDK belongs into its adapters and mains, not into %s", s.dir()))
			}
		}
	}
	return found
}

func arrowRules() []rule {
	file := func(imports ...string) string {
		text := "package p\n"
		for _, i := range imports {
			text += fmt.Sprintf("import %q\n", i)
		}
		return text
	}
	return []rule{
		{
			name:  "no import without an arrow in the table",
			check: checkArrows,
			wrong: []mistake{
				{"workflow.go:2: . may not import github.com/spf13/cobra", tree{"workflow.go": file("github.com/spf13/cobra")}},
				{". may not import " + module + "/internal/wire", tree{"workflow.go": file(module + "/internal/wire")}},
				{". may not import " + module + "/internal/domain", tree{"workflow.go": file(module + "/internal/domain")}},
				{"may not import " + module + "/internal/store", tree{"internal/machine/m.go": file(module, module+"/internal/store")}},
				{"may not import " + module + "/internal/wire", tree{"internal/store/s.go": file(module + "/internal/wire")}},
				{"may not import " + module + "/internal/machine", tree{"internal/supervisor/s.go": file("time", module+"/internal/machine")}},
				{"may not import " + module + "/internal/store/sqlitestore", tree{"internal/scheduler/s.go": file(module + "/internal/store/sqlitestore")}},
				{"may not import " + module + "/internal/queue/localqueue", tree{"internal/store/sqlitestore/s.go": file(module + "/internal/queue/localqueue")}},
				{"may not import github.com/aws/aws-lambda-go/lambda", tree{"internal/queue/q.go": file("github.com/aws/aws-lambda-go/lambda")}},
				{"may not import modernc.org/sqlitefoo", tree{"internal/store/sqlitestore/s.go": file("modernc.org/sqlitefoo")}},
				{"may not import " + module + "/internal/machine", tree{"workflows/order/o.go": file(module + "/internal/machine")}},
				{"may not import " + module + "/internal/sample/services", tree{"internal/embedded/e.go": file(module + "/internal/sample/services")}},
				{"may not import " + module + "/importer/internal/asl", tree{"command/c.go": file(module + "/importer/internal/asl")}},
				{"may not import " + module + "/lab/e2e/aws", tree{"lab/sim/s.go": file(module + "/lab/e2e/aws")}},
				{"may not import unsafe", tree{"internal/wire/w.go": file("unsafe")}},
				{"a package without a row", tree{"internal/brandnew/b.go": file()}},
			},
			good: []tree{
				{"workflow.go": file("time", "encoding/json", module+"/internal/limits")},
				{"agent/a.go": file(module + "/internal/domain")},
				{"internal/store/dynamostore/d.go": file(module, module+"/internal/store", awsSDK+"/service/dynamodb")},
				{"internal/embedded/e.go": file(module+"/internal/machine", module+"/internal/store/sqlitestore")},
				{"internal/supervisor/s_test.go": file(module + "/internal/scheduler")},
				{"lab/e2e/aws/e.go": file(module + "/e2e/aws/standin")},
				{"functions/scheduler/main.go": file(lambda+"/lambda", module+"/internal/scheduler")},
			},
		},
		{
			name:  "the Supervisor does not reach the core",
			check: checkReach,
			wrong: []mistake{{
				"internal/supervisor -> internal/queue -> internal/machine",
				tree{"internal/supervisor/s.go": file(module + "/internal/queue"), "internal/queue/q.go": file(module + "/internal/machine")},
			}},
			good: []tree{{"internal/supervisor/s.go": file(module), "internal/scheduler/s.go": file(module + "/internal/machine")}},
		},
		{
			name:  "the AWS SDK stays in its adapters and mains",
			check: checkAWS,
			wrong: []mistake{
				{"not into internal/scheduler", tree{"internal/scheduler/s.go": file(awsSDK + "/aws")}},
				{"not into internal/store", tree{"internal/store/s_test.go": file(awsSDK + "/service/dynamodb")}},
				{"not into examples/demo", tree{"examples/demo/d.go": file(awsSDK + "/service/sqs")}},
			},
			good: []tree{{
				"internal/queue/sqsqueue/q.go": file(awsSDK + "/service/sqs"), "functions/agent/main.go": file(awsSDK + "/config"),
				"internal/store/dynamostore/d_test.go": file(awsSDK + "/aws"),
			}},
		},
	}
}
