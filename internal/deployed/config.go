package deployed

import (
	"cmp"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

// The variables that functions read, beside those of the AWS SDK and those that Lambda sets.
const (
	// VarTable and VarIndex name the table and its index on CompleteBy; VarShards is how many shards
	// the index has, empty for the store's own number.
	VarTable  = "MAKEGOOD_TABLE"
	VarIndex  = "MAKEGOOD_INDEX"
	VarShards = "MAKEGOOD_SHARDS"
	// VarQueues gives the address of each queue, events=https://...,quarantine=https://...; or VarQueuePrefix is the prefix
	// of their names in the account. One of these must be set.
	VarQueues      = "MAKEGOOD_QUEUES"
	VarQueuePrefix = "MAKEGOOD_QUEUE_PREFIX"
	// VarReplies registers reply queues, shop=replies-shop,...: the names that a job may use as replyTo, and their queues.
	// VarAlertTopic is the ARN of an SNS topic, VarWebhook the ARN of an SSM parameter with an address for alerts, VarBus
	// the name of an event bus. All optional.
	VarReplies    = "MAKEGOOD_REPLIES"
	VarAlertTopic = "MAKEGOOD_ALERT_TOPIC"
	VarWebhook    = "MAKEGOOD_WEBHOOK_PARAMETER"
	VarBus        = "MAKEGOOD_BUS"
	// VarChangesBus is the name of the bus on which every change of every job is published; empty: no changes are kept for
	// it. It is the same for all functions that save jobs.
	VarChangesBus = "MAKEGOOD_CHANGES_BUS"
	// VarPage is the URL of the page of this stack, where there is one, VarRunbook that of a runbook of one's own: what the
	// links of alerts begin with. Both optional.
	VarPage    = "MAKEGOOD_PAGE_URL"
	VarRunbook = "MAKEGOOD_RUNBOOK_URL"
	// VarBreakers names the agents that have a breaker; "*": all. One that is not among the agents is refused.
	VarBreakers = "MAKEGOOD_BREAKERS"
	// VarAgent is the agent that an agent function runs. VarHTTPAllow lists private hosts, addresses
	// and blocks that the http agent may call.
	VarAgent     = "MAKEGOOD_AGENT"
	VarHTTPAllow = "MAKEGOOD_HTTP_ALLOW"
	// VarSecrets says where an agent's secrets are, with the prefix of their names: ssm:/makegood/STACK/AGENT/ or
	// secretsmanager:makegood/STACK/AGENT/. Empty: in the environment, MAKEGOOD_SECRET_NAME.
	VarSecrets = "MAKEGOOD_SECRETS"
	// VarAgents lists the agents that have a tasks queue, with commas between; a workflow that names another
	// is refused. Empty: not looked at, or those that VarQueues has a queue of.
	VarAgents = "MAKEGOOD_AGENTS"
	// VarLinks is the URL of the door complete, the prefix of links for those asked. Empty: they get no link.
	VarLinks = "MAKEGOOD_LINKS"
	// VarDoor is the door that a door's function is: submit, read, operate or complete.
	VarDoor = "MAKEGOOD_DOOR"
	// VarStack is the name of the stack, under which metrics are filed; default: the table's name.
	VarStack = "MAKEGOOD_STACK"
	// VarMetricsByName is yes if times, attempts and ends are also metrics per agent and per workflow, which cost by their
	// number; empty is no.
	VarMetricsByName = "MAKEGOOD_METRICS_BY_NAME"
	// VarRetention is for how many days a job is kept after its end; empty or 0: for ever.
	VarRetention = "MAKEGOOD_RETENTION_DAYS"
	// VarPayloads says where large payloads are, as BUCKET/STACK; empty: nowhere. VarPayloadDays is the number of days
	// after which the bucket's lifecycle deletes objects that were neither written nor kept; empty or 0: never.
	VarPayloads    = "MAKEGOOD_PAYLOADS"
	VarPayloadDays = "MAKEGOOD_PAYLOAD_DAYS"
	// VarLogLevel is DEBUG, INFO, WARN or ERROR; default: INFO.
	VarLogLevel = "MAKEGOOD_LOG_LEVEL"
)

// What Lambda sets.
const (
	varRegion     = "AWS_REGION"
	varFunction   = "AWS_LAMBDA_FUNCTION_NAME"
	varMemory     = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
	varRuntimeAPI = "AWS_LAMBDA_RUNTIME_API"
)

// maxRetention is the longest retention, in days: ten years.
const maxRetention = 3660

// maxPayloadDays is the longest that payloads may stay untouched, in days.
const maxPayloadDays = 2 * maxRetention

// place is where a stack keeps its jobs and queues.
type place struct {
	table, index string
	shards       int
	retention    time.Duration
	queues       map[string]string
	prefix       string
	agents       []string
}

// parts is the configuration of every function.
type parts struct {
	place
	region   string
	function string
	stack    string
	level    slog.Level
	byName   bool
	// memory is the function's, in MB; 0: not known.
	memory   int
	payloads large
}

func (e *environment) parts() parts {
	// Without this check a missing value would first show at a request.
	p := parts{
		region:   e.required(varRegion, "the AWS region"),
		function: e.required(varFunction, "the name of this function"),
		place:    e.place(), stack: e.getenv(VarStack), level: e.level(VarLogLevel),
		memory: e.number(varMemory, 1, 1<<20),
	}
	p.stack = cmp.Or(p.stack, p.table)
	p.payloads = e.payloads(p.retention)
	switch text := e.getenv(VarMetricsByName); text {
	case "", "no":
	case "yes":
		p.byName = true
	default:
		e.refuse(VarMetricsByName, "is %q, want yes or no", text)
	}
	return p
}

func (e *environment) place() place {
	p := place{
		table:     e.required(VarTable, "the name of the table"),
		index:     e.required(VarIndex, "the name of its index on CompleteBy"),
		shards:    e.number(VarShards, 1, 1<<10),
		retention: time.Duration(e.number(VarRetention, 0, maxRetention)) * 24 * time.Hour,
		queues:    e.pairs(VarQueues), prefix: e.getenv(VarQueuePrefix),
		agents: e.list(VarAgents),
	}
	if len(p.agents) == 0 {
		p.agents = agentsOf(p.queues)
	}
	if (e.getenv(VarQueues) == "") == (p.prefix == "") {
		e.refuse(VarQueues, "or %s must be set, and not both", VarQueuePrefix)
	}
	return p
}

// needs refuses a map of queues without these.
func (e *environment) needs(p place, names ...string) {
	if p.queues == nil {
		return
	}
	for _, name := range names {
		if p.queues[name] == "" {
			e.refuse(VarQueues, "has no %s", name)
		}
	}
}

// schedulerConfig is the further configuration of the Scheduler's function.
type schedulerConfig struct {
	parts
	replies             map[string]string
	topic, webhook, bus string
	changes             string
	links               string
	// page and runbook are the prefixes of links in alerts.
	page, runbook string
	breakers      []string
}

func readScheduler(getenv func(string) string) (schedulerConfig, error) {
	e := &environment{getenv: getenv}
	c := schedulerConfig{
		parts: e.parts(), replies: e.pairs(VarReplies),
		topic: getenv(VarAlertTopic), webhook: getenv(VarWebhook), bus: getenv(VarBus),
		changes: getenv(VarChangesBus),
		links:   getenv(VarLinks),
		page:    strings.TrimSuffix(getenv(VarPage), "/"), runbook: getenv(VarRunbook),
		breakers: e.list(VarBreakers),
	}
	for name, address := range map[string]string{VarPage: c.page, VarRunbook: c.runbook} {
		if address != "" && !webhook.IsAddress(address) {
			e.refuse(name, "%.200q is not a URL of http or https", address)
		}
	}
	if err := domain.CheckBreakers(c.breakers, c.agents); len(c.agents) > 0 && err != nil {
		e.refuse(VarBreakers, "has %v", err)
	}
	e.needs(c.place, EventsQueue, QuarantineQueue)
	for _, queue := range c.replies {
		e.needs(c.place, queue)
	}
	if webhook.IsAddress(c.webhook) {
		// It may hold a secret, which is why a parameter is to hold it.
		e.refuse(VarWebhook, "is an address, want the ARN of the SSM parameter that holds it")
	}
	return c, e.err()
}

// where describes this stack in alerts.
func (c schedulerConfig) where() notify.Where {
	return notify.Where{Name: "stack " + c.stack, Flags: "--stack " + c.stack, Page: c.page, Runbook: c.runbook}
}

// link makes the links for those asked; nil: there are none.
func (c schedulerConfig) link() func(token string) string {
	if c.links == "" {
		return nil
	}
	return func(token string) string { return strings.TrimSuffix(c.links, "/") + httpapi.LinkPath(token) }
}

// agentConfig is the further configuration of an agent's function.
type agentConfig struct {
	parts
	agent      string
	allow      []string
	runtimeAPI string
	secrets    secretsPlace
}

func readAgent(getenv func(string) string, agents []agent.Handler) (agentConfig, error) {
	if err := agentrun.Check(agents); err != nil {
		return agentConfig{}, err
	}
	e := &environment{getenv: getenv}
	names := []string{makegood.HTTPAgent}
	for _, a := range agents {
		names = append(names, a.Name())
	}
	c := agentConfig{
		parts: e.parts(), agent: e.oneOf(VarAgent, "the agent that runs here", names),
		allow: e.list(VarHTTPAllow), runtimeAPI: getenv(varRuntimeAPI), secrets: e.secrets(VarSecrets),
	}
	e.needs(c.place, EventsQueue, QuarantineQueue, TasksQueue(c.agent))
	return c, e.err()
}

// doorConfig is the further configuration of a door's function.
type doorConfig struct {
	parts
	door    httpapi.Door
	replies map[string]string
	changes string
}

func readDoor(getenv func(string) string) (doorConfig, error) {
	e := &environment{getenv: getenv}
	var names []string
	for _, d := range append(httpapi.Doors(), httpapi.Complete) {
		names = append(names, string(d))
	}
	c := doorConfig{parts: e.parts(), door: httpapi.Door(e.oneOf(VarDoor, "the door that this function is", names)), replies: e.pairs(VarReplies), changes: getenv(VarChangesBus)}
	e.needs(c.place, EventsQueue)
	return c, e.err()
}

func readSupervisor(getenv func(string) string) (parts, error) {
	e := &environment{getenv: getenv}
	p := e.parts()
	e.needs(p.place, EventsQueue)
	return p, e.err()
}

// The names of the queues. A prefix or an address stands behind each.
const (
	EventsQueue     = "events"
	QuarantineQueue = "quarantine"
	// SubmissionsQueue carries submissions by message, and no other messages.
	SubmissionsQueue = "submissions"
)

// isFrom reports whether a batch was received from a queue, by its name in the account.
func (p place) isFrom(batch events.SQSEvent, queue string) bool {
	physical := p.prefix + queue
	if p.queues != nil {
		physical = path.Base(p.queues[queue])
	}
	return len(batch.Records) > 0 && strings.HasSuffix(batch.Records[0].EventSourceARN, ":"+physical)
}

// TasksQueue is the name of an agent's queue.
func TasksQueue(agent string) string { return fmt.Sprintf("tasks-%s", agent) }

// agentsOf returns the agents that have a queue among these, sorted.
func agentsOf(queues map[string]string) []string {
	var agents []string
	for name := range queues {
		if agent, is := strings.CutPrefix(name, TasksQueue("")); is {
			agents = append(agents, agent)
		}
	}
	slices.Sort(agents)
	return agents
}
