package template

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// ask is a request as IAM sees it: an action on a resource, and what its conditions can look at. A key that the
// request does not have is missing.
type ask struct {
	action, resource string
	keys             map[string][]string
}

// onTable is a request for an item of the table that names these of its attributes.
func onTable(action, leadingKey string, attributes ...string) ask {
	return ask{"dynamodb:" + action, "${Table.Arn}", map[string][]string{
		"dynamodb:LeadingKeys": {leadingKey}, "dynamodb:Attributes": attributes,
	}}
}

// auditing is a request to read the table through that names these attributes.
func auditing(attributes ...string) ask {
	return ask{"dynamodb:Scan", "${Table.Arn}", map[string][]string{"dynamodb:Attributes": attributes, "dynamodb:Select": {"SPECIFIC_ATTRIBUTES"}}}
}

// onQueue is a request to a queue.
func onQueue(action, queue string) ask { return ask{"sqs:" + action, "${" + queue + ".Arn}", nil} }

// may reports whether a role's statements allow a request: one does, and none denies it. It knows what they are made of,
// and panics on everything else.
func (t *template) may(role string, a ask) bool {
	allowed := false
	for _, s := range t.statements(role) {
		matches := func(patterns any, value string) bool {
			return slices.ContainsFunc(texts(patterns), func(pattern string) bool { return like(pattern, value) })
		}
		if !matches(at(s, "Action"), a.action) || !matches(at(s, "Resource"), a.resource) || !a.meets(at(s, "Condition")) {
			continue
		}
		if at(s, "Effect") == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

// meets reports whether every part of a condition holds. ForAllValues holds of a key that is missing, too.
func (a ask) meets(condition any) bool {
	operators, _ := condition.(map[string]any)
	for operator, keys := range operators {
		for key, patterns := range keys.(map[string]any) {
			values, all := a.keys[key], false
			compare := func(pattern, value string) bool { return pattern == value }
			switch operator {
			case "ForAllValues:StringLike":
				all, compare = true, like
			case "ForAllValues:StringEquals":
				all = true
			case "Null":
				if (len(values) == 0) != (text(patterns) == "true") {
					return false
				}
				continue
			case "StringEquals":
			default:
				panic("operator " + operator)
			}
			if !all && len(values) != 1 {
				return false
			}
			for _, value := range values {
				if !slices.ContainsFunc(texts(patterns), func(pattern string) bool { return compare(pattern, value) }) {
					return false
				}
			}
		}
	}
	return true
}

// like compares as StringLike does. No value here holds a slash, which * would not match.
func like(pattern, value string) bool {
	hide := strings.NewReplacer("/", "|", "[", "(", "]", ")", `\`, "|")
	matched, err := path.Match(hide.Replace(pattern), hide.Replace(value))
	return err == nil && matched
}

// The roles of a thief. The agent is payments.
const (
	agentRole, schedulerRole, supervisorRole, scheduleRole = "paymentsAgentRole", "SchedulerRole", "SupervisorRole", "ScheduleRole"
	submitRole, operateRole, readRole, completeRole        = "submitDoorRole", "operateDoorRole", "readDoorRole", "completeDoorRole"
)

// tries are what a thief with a role might like to do, and which of the roles may.
func tries() map[string]try {
	all := triesOnClaims()
	maps.Copy(all, triesOnTheTable())
	maps.Copy(all, triesBeside())
	maps.Copy(all, triesOnPayloads())
	return all
}

// writers are the roles that run the Scheduler's code, and some more.
func writers(and ...string) []string {
	return append([]string{schedulerRole, submitRole, operateRole}, and...)
}

const ownClaims, othersClaims = "claim#payments#order-1", "claim#inventory#order-1"

// claimed are the attributes that a claim writes.
func claimed(more ...string) []string {
	return append([]string{"PK", "SK", "Attempt", "LockedBy", "StartedAt", "CompleteBy", "ExpiresAt"}, more...)
}

func triesOnClaims() map[string]try {
	return map[string]try{
		"claim a step of its own": {onTable("UpdateItem", ownClaims, claimed("Closed", "Ends")...), writers(completeRole, agentRole)},
		"put a claim of its own anew, and what else is in its item away": {onTable("PutItem", ownClaims, claimed()...), writers(completeRole)},
		"heartbeat": {
			onTable("UpdateItem", ownClaims, "PK", "SK", "CompleteBy", "ExpiresAt", "Attempt", "LockedBy", "Closed", "Ends"), writers(completeRole, agentRole),
		},
		"read a claim of its own":                       {onTable("GetItem", ownClaims, "PK", "SK"), writers(completeRole, agentRole, readRole)},
		"delete a claim of its own":                     {onTable("DeleteItem", ownClaims, "PK", "SK"), nil},
		"put a claim into the index":                    {onTable("PutItem", ownClaims, claimed("Shard")...), writers(completeRole)},
		"move a claim into the index":                   {onTable("UpdateItem", ownClaims, "PK", "SK", "Shard"), writers(completeRole)},
		"put a claim into the list of jobs in Error":    {onTable("PutItem", ownClaims, claimed("Attention")...), writers(completeRole)},
		"claim another agent's step":                    {onTable("UpdateItem", othersClaims, claimed()...), writers(completeRole)},
		"claim a step of an agent whose name is longer": {onTable("UpdateItem", "claim#payments2#order-1", claimed()...), writers(completeRole)},
		"end another agent's claim":                     {onTable("UpdateItem", othersClaims, "PK", "SK", "Closed"), writers(completeRole)},
		"read another agent's claim":                    {onTable("GetItem", othersClaims, "PK", "SK"), writers(completeRole, readRole)},
	}
}

func triesOnTheTable() map[string]try {
	const job = "job#order-1"
	return map[string]try{
		"read a job":                              {onTable("GetItem", job, "PK", "SK"), writers(completeRole, readRole)},
		"query a job's items":                     {onTable("Query", job, "PK", "SK"), writers(completeRole, readRole)},
		"write without naming a key":              {ask{"dynamodb:UpdateItem", "${Table.Arn}", nil}, writers()},
		"write over a job":                        {onTable("PutItem", job, "PK", "SK"), writers(completeRole)},
		"take a job out of the index":             {onTable("UpdateItem", job, "PK", "SK", "CompleteBy"), writers(completeRole)},
		"write to a job as a claim is written":    {onTable("UpdateItem", job, claimed()...), writers(completeRole)},
		"delete a job":                            {onTable("DeleteItem", job, "PK", "SK"), nil},
		"change a definition":                     {onTable("PutItem", "definition#1", "PK", "SK", "Data"), writers()},
		"make another definition the current one": {onTable("PutItem", "workflow#order", "PK", "SK", "Definition"), writers()},
		"take a lease":                            {onTable("UpdateItem", "lease#0", "PK", "SK", "Holder"), writers(supervisorRole)},
		"delete a lease":                          {onTable("DeleteItem", "lease#0", "PK", "SK"), []string{supervisorRole}},
		"read the table through":                  {ask{"dynamodb:Scan", "${Table.Arn}", nil}, []string{readRole}},
		"audit the table":                         {auditing("PK", "SK", "ProcessState", "CompleteBy", "Shard", "ExpiresAt"), []string{supervisorRole, readRole}},
		"audit what jobs hold":                    {auditing("PK", "SK", "Data"), []string{readRole}},
		"read a lease":                            {onTable("GetItem", "lease#audit", "PK", "SK"), writers(supervisorRole, readRole)},
		"read what is paused":                     {onTable("GetItem", "holds#", "PK", "SK"), writers(completeRole, agentRole, readRole)},
		"pause an agent":                          {onTable("PutItem", "holds#", "PK", "SK", "Data"), writers()},
		"pause an agent by an update":             {onTable("UpdateItem", "holds#", "PK", "SK", "Data"), writers()},
		"read many items":                         {onTable("BatchGetItem", ownClaims, "PK", "SK"), []string{readRole}},
		"write many items":                        {onTable("BatchWriteItem", ownClaims, "PK", "SK"), nil},
		"say it in PartiQL":                       {onTable("PartiQLSelect", ownClaims, "PK", "SK"), nil},
		"export the table":                        {ask{"dynamodb:ExportTableToPointInTime", "${Table.Arn}", nil}, nil},
		"see what is overdue":                     {ask{"dynamodb:Query", "${Table.Arn}/index/CompleteBy", nil}, []string{supervisorRole, readRole}},
		"see what waits for a person":             {ask{"dynamodb:Query", "${Table.Arn}/index/Attention", nil}, []string{schedulerRole, operateRole, readRole}},
	}
}

func triesBeside() map[string]try {
	const functions = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-"
	const parameters = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/makegood/${AWS::StackName}/"
	return map[string]try{
		"read a secret of its own":       {ask{"ssm:GetParameter", parameters + "payments/key", nil}, []string{agentRole}},
		"read a secret of another agent": {ask{"ssm:GetParameter", parameters + "inventory/key", nil}, nil},
		"change a secret":                {ask{"ssm:PutParameter", parameters + "payments/key", nil}, nil},
		"take a task of its own":         {onQueue("ReceiveMessage", "paymentsTasksQueue"), []string{agentRole}},
		"take a task of another agent":   {onQueue("ReceiveMessage", "inventoryTasksQueue"), nil},
		"send a task":                    {onQueue("SendMessage", "paymentsTasksQueue"), writers(completeRole, agentRole)},
		"send another agent a task":      {onQueue("SendMessage", "inventoryTasksQueue"), writers(completeRole)},
		"send a reply":                   {onQueue("SendMessage", "EventsQueue"), writers(completeRole, agentRole, supervisorRole)},
		"submit by a message":            {onQueue("SendMessage", "SubmissionsQueue"), []string{schedulerRole}},
		"take a submission":              {onQueue("ReceiveMessage", "SubmissionsQueue"), []string{schedulerRole}},
		"take an event":                  {onQueue("ReceiveMessage", "EventsQueue"), []string{schedulerRole}},
		"ask how many events wait":       {onQueue("GetQueueAttributes", "EventsQueue"), []string{schedulerRole, supervisorRole}},
		"ask how many tasks wait":        {onQueue("GetQueueAttributes", "paymentsTasksQueue"), []string{agentRole, readRole}},
		"put poison into quarantine":     {onQueue("SendMessage", "QuarantineQueue"), []string{agentRole, schedulerRole}},
		"read the quarantine":            {onQueue("ReceiveMessage", "QuarantineQueue"), nil},
		"read dead letters":              {onQueue("ReceiveMessage", "EventsDeadQueue"), nil},
		"say that a sweep failed":        {onQueue("SendMessage", "SweepsDeadQueue"), []string{supervisorRole, scheduleRole}},
		"alert an operator":              {ask{"sns:Publish", "${AlertTopic}", nil}, []string{schedulerRole}},
		"announce on the bus":            {ask{"events:PutEvents", "${Bus.Arn}", nil}, []string{schedulerRole}},
		"start the Supervisor":           {ask{"lambda:InvokeFunction", functions + "supervisor", nil}, []string{scheduleRole}},
		"start the Scheduler":            {ask{"lambda:InvokeFunction", functions + "scheduler", nil}, nil},
		"knock at a door":                {ask{"lambda:InvokeFunctionUrl", functions + "operate", nil}, nil},
		"change its code":                {ask{"lambda:UpdateFunctionCode", functions + "scheduler", nil}, nil},
		"take another role":              {ask{"sts:AssumeRole", "${SchedulerRole.Arn}", nil}, nil},
	}
}

// try is a request, and the roles that may make it.
type try struct {
	ask ask
	may []string
}

// checkTries: each role may do what is said of it, and no more.
func checkTries(t *template) []string {
	var found []string
	for _, what := range slices.Sorted(maps.Keys(tries())) {
		tried := tries()[what]
		for _, role := range writers(agentRole, supervisorRole, scheduleRole, readRole, completeRole) {
			switch got, want := t.may(role, tried.ask), slices.Contains(tried.may, role); {
			case got && !want:
				found = append(found, role+" may "+what)
			case want && !got:
				found = append(found, role+" cannot "+what)
			}
		}
	}
	return found
}

// What the Supervisor's role may read of all jobs is what the audit asks of them.
func TestTheSupervisorMayReadWhatItsAuditAsks(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	if !whole.may(supervisorRole, auditing(dynamostore.AuditedAttributes()...)) {
		t.Errorf("it may not read %v", dynamostore.AuditedAttributes())
	}
	for _, s := range whole.statements(supervisorRole) {
		granted := texts(at(s, "Condition", "ForAllValues:StringEquals", "dynamodb:Attributes"))
		if texts(at(s, "Action"))[0] == "dynamodb:Scan" && !slices.Equal(granted, dynamostore.AuditedAttributes()) {
			t.Errorf("it may read %v, want %v", granted, dynamostore.AuditedAttributes())
		}
	}
}

// What one agent may do another may do with its own name, and only that.
func TestAnAgentMayTouchItsOwnClaimsOnly(t *testing.T) {
	whole := load(t, readFile(t, templateFile))
	for _, agent := range whole.agents() {
		for _, other := range whole.agents() {
			for _, action := range []string{"UpdateItem", "GetItem"} {
				if got := whole.may(agent+"AgentRole", onTable(action, "claim#"+other+"#order-1", "PK", "SK")); got != (agent == other) {
					t.Errorf("agent %s may %s a claim of %s: %v", agent, action, other, got)
				}
			}
		}
	}
}
