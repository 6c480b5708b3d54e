package thief

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// The roles of template.yaml, and those to whom the docs give rights. The agent is payments.
const (
	Agent, Scheduler, Supervisor, Schedule = "paymentsAgentRole", "SchedulerRole", "SupervisorRole", "ScheduleRole"
	Submit, Operate, Read, Complete        = "submitDoorRole", "operateDoorRole", "readDoorRole", "completeDoorRole"
	// Transaction may submit in a transaction of its own, Message by a message (docs/doors.md); DeadLetters may do what
	// docs/dead-letters.md shows.
	Transaction, Message, DeadLetters = "transaction", "message", "dead letters"
)

// writers are the roles that run the Scheduler's code on everything, and some more.
func writers(and ...string) []string { return append([]string{Scheduler, Submit, Operate}, and...) }

const own, others, job = "claim#payments#order-1", "claim#inventory#order-1", "job#order-1"

// claimed are the attributes that a claim writes.
func claimed(more ...string) []string {
	return append([]string{"Attempt", "LockedBy", "StartedAt", "CompleteBy", "ExpiresAt"}, more...)
}

func triesOnClaims() []Try {
	return []Try{
		{"claim a step of its own", update(own, claimed("Closed", "Ends")...), writers(Complete, Agent)},
		{"heartbeat", update(own, "CompleteBy", "ExpiresAt", "Progress"), writers(Complete, Agent)},
		{"read a claim of its own", get(own), writers(Complete, Agent, Read)},
		{"put a claim of its own anew, and what else is in its item away", put(own, claimed()...), writers(Complete)},
		{"delete a claim of its own", remove(own), nil},
		{"move a claim of its own into the index", update(own, "Shard"), writers(Complete)},
		{"put a claim of its own into the list of jobs in Error", update(own, "Attention"), writers(Complete)},
		{"claim another agent's step", update(others, claimed()...), writers(Complete)},
		{"claim a step of an agent whose name is longer", update("claim#payments2#order-1", claimed()...), writers(Complete)},
		{"end another agent's claim", update(others, "Closed"), writers(Complete)},
		{"read another agent's claim", get(others), writers(Complete, Read)},
		{"list the claims of a job", query("", own), writers(Complete, Read)},
		{"change a claim of its own and another's in one transaction", transact(own, others), writers(Complete)},
		{"ask in a transaction whether a claim of its own stands", check(own), nil},
	}
}

func triesOnTheTable() []Try {
	return []Try{
		{"read a job", get(job), writers(Complete, Read)},
		{"query a job's items", query("", job), writers(Complete, Read)},
		{"write without naming a key", asked("dynamodb:UpdateItem", "dynamodb", "table/"+*table, nil), writers()},
		{"write over a job", put(job, "Data"), writers(Complete, Transaction)},
		{"take a job out of the index", update(job, "CompleteBy"), writers(Complete)},
		{"write to a job as a claim is written", update(job, claimed()...), writers(Complete)},
		{"delete a job", remove(job), nil},
		{"read the names of steps", get("steps#1"), writers(Complete, Read)},
		{"change the names of steps", put("steps#1", "Data"), writers()},
		{"read a definition", get("definition#1"), writers(Complete, Read, Transaction)},
		{"change a definition", put("definition#1", "Data"), writers()},
		{"make another definition the current one", put("workflow#order", "Definition"), writers()},
		{"change a schedule", put("schedules#", "Data"), writers()},
		{"delete a schedule", remove("schedules#"), []string{Scheduler, Operate}},
		{"take a permit of an agent", put("gate#shop", "Ticket", "Data"), writers(Complete)},
		{"read a gate", query("", "gate#shop"), writers(Complete, Read)},
		{"free a permit of an agent", remove("gate#shop"), writers(Complete)},
		{"take a lease", update("lease#0", "Holder", "Until"), writers(Supervisor)},
		{"delete a lease", remove("lease#0"), []string{Supervisor}},
		{"read a lease", get("lease#audit"), writers(Supervisor, Read)},
		{"silence an alert", update("alert#alert-1", "Place"), writers()},
		{"read what is paused", get("holds#"), writers(Complete, Agent, Read)},
		{"pause an agent", put("holds#", "Data"), writers()},
		{"pause an agent by an update", update("holds#", "Data"), writers()},
		{"read the table through", scan(), []string{Read}},
		{"audit the table", scan("PK", "SK", "ProcessState", "CompleteBy", "Shard", "ExpiresAt"), []string{Supervisor, Read}},
		{"audit what jobs hold", scan("PK", "SK", "Data"), []string{Read}},
		{"see what is overdue", query("CompleteBy", "0"), []string{Supervisor, Read}},
		{"see what waits for a person", query("Attention", "0"), []string{Scheduler, Operate, Read}},
		{"read many items", func(c clients) error {
			_, err := c.db.BatchGetItem(c.ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*table: {Keys: []map[string]types.AttributeValue{key(own)}}}})
			return err
		}, []string{Read}},
		{"write many items", func(c clients) error {
			_, err := c.db.BatchWriteItem(c.ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*table: {{PutRequest: &types.PutRequest{Item: key(own)}}}}})
			return err
		}, nil},
		{"say it in PartiQL", func(c clients) error {
			_, err := c.db.ExecuteStatement(c.ctx, &dynamodb.ExecuteStatementInput{Statement: aws.String(`SELECT * FROM "` + *table + `"`)})
			return err
		}, nil},
		{"export the table", asked("dynamodb:ExportTableToPointInTime", "dynamodb", "table/"+*table, nil), nil},
		{"delete the table", asked("dynamodb:DeleteTable", "dynamodb", "table/"+*table, nil), nil},
		{"use the key beside the services", asked("kms:Encrypt", "kms", "key/Key", nil), nil},
	}
}

// transact changes two items in one transaction.
func transact(pks ...string) request {
	return func(c clients) error {
		in := &dynamodb.TransactWriteItemsInput{}
		for _, pk := range pks {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
				TableName: table, Key: key(pk), UpdateExpression: aws.String("SET LockedBy = :v"), ExpressionAttributeValues: item{":v": text("x")},
			}})
		}
		_, err := c.db.TransactWriteItems(c.ctx, in)
		return err
	}
}

// check asks in a transaction whether a claim stands.
func check(pk string) request {
	return func(c clients) error {
		_, err := c.db.TransactWriteItems(c.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
			TableName: table, Key: key(pk), ConditionExpression: aws.String("LockedBy = :v"), ExpressionAttributeValues: item{":v": text("x")},
		}}}})
		return err
	}
}

func triesOnQueues() []Try {
	return []Try{
		{"take a task of its own", receive("tasks-payments"), []string{Agent}},
		{"delete a task of its own", drop("tasks-payments"), []string{Agent}},
		{"take a task of another agent", receive("tasks-inventory"), nil},
		{"send itself a task", send("tasks-payments"), writers(Complete, Agent)},
		{"send another agent a task", send("tasks-inventory"), writers(Complete)},
		{"send a reply", send("events"), writers(Complete, Agent, Supervisor, DeadLetters)},
		{"submit by a message", send("submissions"), []string{Scheduler, Message, DeadLetters}},
		{"tell a listener", send("replies-shop"), []string{Scheduler}},
		{"take a submission", receive("submissions"), []string{Scheduler}},
		{"take an event", receive("events"), []string{Scheduler}},
		{"delete an event", drop("events"), []string{Scheduler}},
		{"ask how many events wait", depth("events"), []string{Scheduler, Supervisor}},
		{"ask how many tasks wait", depth("tasks-payments"), []string{Agent, Read}},
		{"put poison into quarantine", send("quarantine"), []string{Agent, Scheduler}},
		{"read the quarantine", receive("quarantine"), []string{DeadLetters}},
		{"read dead letters", receive("events-dead"), []string{DeadLetters}},
		{"say that a sweep failed", send("sweeps-dead"), []string{Supervisor, Schedule}},
	}
}

func triesBeside() []Try {
	const functions = "function:shop-prod-"
	return []Try{
		{"read a secret of its own", secret("payments/key"), []string{Agent}},
		{"read a secret of another agent", secret("inventory/key"), nil},
		{"change a secret", asked("ssm:PutParameter", "ssm", "parameter/makegood/shop-prod/payments/key", nil), nil},
		{"alert an operator", publish, []string{Scheduler}},
		{"announce on the bus", announce, []string{Scheduler}},
		{"start the Supervisor", asked("lambda:InvokeFunction", "lambda", functions+"supervisor", nil), []string{Schedule}},
		{"start the Scheduler", asked("lambda:InvokeFunction", "lambda", functions+"scheduler", nil), nil},
		{"knock at a door", asked("lambda:InvokeFunctionUrl", "lambda", functions+"operate", nil), nil},
		{"change its code", asked("lambda:UpdateFunctionCode", "lambda", functions+"scheduler", nil), nil},
		{"look about in the VPC", asked("ec2:DescribeSubnets", "", "*", map[string][]string{
			"lambda:SourceFunctionArn": {"arn:aws:lambda:eu-central-1:123456789012:function:shop-prod-scheduler"},
		}), nil},
		{"take another role", asked("sts:AssumeRole", "", "arn:aws:iam::123456789012:role/shop-prod-SchedulerRole", nil), nil},
	}
}

// triesOnPayloads are what a thief with a role might like to do in the bucket. No role deletes what has its name.
func triesOnPayloads() []Try {
	const own, others, submitted = "agent/payments/order-1/ab", "agent/inventory/order-1/ab", "submitter/order-1/ab"
	const incoming, othersIncoming = "incoming/agent/payments/x", "incoming/agent/inventory/x"
	bucket := "arn:aws:s3:::" + World().Names["Payloads"]
	account := func(id string) map[string][]string { return map[string][]string{"aws:ResourceAccount": {id}} }
	here := account(World().Account)
	return []Try{
		{"write a payload under its own name", object("put", own), writers(Complete, Agent)},
		{"write a payload under another's name", object("put", others), writers(Complete)},
		{"write a payload as a submitter", object("put", submitted), writers(Complete)},
		{"copy another's payload onto itself", object("copy", others), writers(Complete)},
		{"write parts of its own", object("put", incoming), []string{Agent}},
		{"read parts of its own", object("get", incoming), []string{Agent}},
		{"take back parts of its own", object("delete", incoming), []string{Agent}},
		{"end an upload of its own", object("abort", incoming), []string{Agent}},
		{"write parts of another", object("put", othersIncoming), nil},
		{"read parts of another", object("get", othersIncoming), nil},
		{"read another's payload", object("get", others), writers(Complete, Agent, Read)},
		{"read what was submitted", object("get", submitted), writers(Complete, Agent, Read)},
		{"delete a payload of its own", object("delete", own), nil},
		{"delete what was submitted", object("delete", submitted), nil},
		{"list the bucket", object("list", ""), writers(Complete, Read)},
		{"read another stack's payload", asked("s3:GetObject", "", bucket+"/other/agent/payments/order-1/ab", here), nil},
		{"read from a bucket of another account", asked("s3:GetObject", "", bucket+"/shop-prod/"+own, account("999999999999")), nil},
		{"change when payloads go", asked("s3:PutLifecycleConfiguration", "", bucket, here), nil},
		{"let everybody read the bucket", asked("s3:PutBucketPolicy", "", bucket, here), nil},
		{"delete the bucket", asked("s3:DeleteBucket", "", bucket, here), nil},
		{"read an old version, if there were any", asked("s3:GetObjectVersion", "", bucket+"/shop-prod/"+own, here), nil},
	}
}

// asked is a request that no client of ours makes, as IAM sees it.
func asked(action, service, resource string, keys map[string][]string) request {
	if service != "" {
		resource = "arn:aws:" + service + ":" + World().Region + ":" + World().Account + ":" + resource
	}
	return func(c clients) error { return c.ask(iam.Ask{Action: action, Resource: resource, Keys: keys}) }
}
