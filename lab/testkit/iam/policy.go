// Package iam judges requests to AWS by policies, as IAM does: those of template.yaml by role, and those that the docs
// show. It stands before a stand-in as a proxy, knows callers by their access key, which is the name of their role,
// works out the actions, resources and condition keys of each request, and refuses it unless a statement allows it.
//
// It knows the services and the condition operators that we use, and refuses the rest. It checks no signature, no trust
// policy, no resource policy and no permission boundary; of KMS it knows the requests of services for a caller.
package iam

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// Ask is a request as IAM sees it: an action on a resource, and what conditions can look at, by condition key. A key
// that the request does not have is missing.
type Ask struct {
	Action, Resource string
	Keys             map[string][]string
}

// String names the request, for the error of who is refused.
func (a Ask) String() string { return fmt.Sprintf("%s on %s %v", a.Action, a.Resource, a.Keys) }

// World is where a stack is, what those of its resources are called that its template does not name, and the agents
// that it has beside the template's.
type World struct {
	Region, Account, Stack string
	Names                  map[string]string
	Agents                 []string
}

// Policies are the statements of roles, by their names, and what they are about.
type Policies struct {
	World
	statements map[string][]any
	// keys are the KMS keys by the ARN of their use; partition is the partition key's attribute, by the index.
	keys, partition map[string]string
}

// Load reads the policies of a template's roles, for a stack with these parameters.
func Load(template string, parameters map[string]any, w World) (*Policies, error) {
	all := map[string]any{"AWS::StackName": w.Stack, "AWS::Region": w.Region, "AWS::AccountId": w.Account, "AWS::Partition": "aws"}
	maps.Copy(all, parameters)
	for _, agent := range w.Agents {
		template = strings.Replace(template, "&agents [", "&agents ["+agent+", ", 1)
	}
	file, err := stackfile.Parse(template, all)
	if err != nil {
		return nil, err
	}
	p := &Policies{World: w, statements: map[string][]any{}, keys: map[string]string{}, partition: map[string]string{}}
	names := p.names(file)
	for _, role := range file.Of("AWS::IAM::Role") {
		if file.Exists(role) {
			p.statements[role] = replaced(file.Statements(role), names).([]any)
		}
	}
	for name, r := range file.Resources {
		arn := names.Replace("${" + name + ".Arn}")
		for _, path := range [][]string{{"KmsMasterKeyId"}, {"SSESpecification", "KMSMasterKeyId"}} {
			if of := stackfile.At(r.Properties, path...); of != nil {
				p.keys[arn] = p.arn("kms", "key/Key")
			}
		}
		if r.Kind == "AWS::DynamoDB::Table" {
			p.partitions(r)
		}
		if r.Kind == "AWS::S3::Bucket" {
			p.keys[arn] = p.arn("kms", "key/Key")
		}
	}
	return p, nil
}

// Add gives a role the statements of a policy document that is JSON, or a list of statements.
func (p *Policies) Add(role, policy string) error {
	var document any
	if err := json.Unmarshal([]byte(policy), &document); err != nil {
		return fmt.Errorf("policy of %s: %w", role, err)
	}
	if whole, is := document.(map[string]any); is {
		document = whole["Statement"]
	}
	p.statements[role] = append(p.statements[role], stackfile.List(document)...)
	return nil
}

// Statements are those of a role.
func (p *Policies) Statements(role string) []any { return p.statements[role] }

// Roles are the names of all roles.
func (p *Policies) Roles() []string { return slices.Sorted(maps.Keys(p.statements)) }

// Shown gives a role the policy that a page shows first below a heading, for this stack in place of its own.
func (p *Policies) Shown(role, page, heading string) error {
	_, rest, found := strings.Cut(page, "\n"+heading+"\n")
	_, rest, shown := strings.Cut(rest, "```json\n")
	policy, _, closed := strings.Cut(rest, "\n```")
	if !found || !shown || !closed {
		return fmt.Errorf("no policy is shown under %s", heading)
	}
	here := strings.NewReplacer(
		"REGION", p.Region, "ACCOUNT", p.Account, ":...:", ":"+p.Region+":"+p.Account+":", "TABLE", p.Names["Table"], "STACK", p.Stack,
		`"KEYARN"`, `"`+p.arn("kms", "key/Key")+`"`, `"KEY"`, `"`+p.arn("kms", "key/Key")+`"`,
	)
	return p.Add(role, here.Replace(policy))
}

func (p *Policies) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + p.Region + ":" + p.Account + ":" + resource
}

// names replaces references to resources by their names and ARNs.
func (p *Policies) names(file *stackfile.File) *strings.Replacer {
	var pairs []string
	for name, r := range file.Resources {
		called := p.Names[name]
		for _, property := range []string{"QueueName", "TopicName", "FunctionName", "LogGroupName", "Name"} {
			if given := stackfile.Text(r.Properties[property]); called == "" {
				called = given
			}
		}
		if called == "" {
			called = p.Stack + "-" + name
		}
		arn := map[string]string{
			"AWS::DynamoDB::Table": p.arn("dynamodb", "table/"+called), "AWS::SQS::Queue": p.arn("sqs", called), "AWS::SNS::Topic": p.arn("sns", called),
			"AWS::Events::EventBus": p.arn("events", "event-bus/"+called), "AWS::S3::Bucket": "arn:aws:s3:::" + called, "AWS::KMS::Key": p.arn("kms", "key/Key"),
			"AWS::Logs::LogGroup": p.arn("logs", "log-group:"+called+":*"), "AWS::Serverless::Function": p.arn("lambda", "function:"+called),
			"AWS::IAM::Role": "arn:aws:iam::" + p.Account + ":role/" + called,
		}[r.Kind]
		reference := called
		if r.Kind == "AWS::SNS::Topic" {
			reference = arn
		}
		pairs = append(pairs, "${"+name+".Arn}", arn, "${"+name+"}", reference)
	}
	return strings.NewReplacer(pairs...)
}

// partitions keeps the partition keys of a table and its indexes.
func (p *Policies) partitions(table stackfile.Resource) {
	of := func(schema any) string {
		return stackfile.Text(stackfile.At(stackfile.List(schema)[0], "AttributeName"))
	}
	p.partition[""] = of(table.Properties["KeySchema"])
	for _, index := range stackfile.List(table.Properties["GlobalSecondaryIndexes"]) {
		p.partition[stackfile.Text(stackfile.At(index, "IndexName"))] = of(stackfile.At(index, "KeySchema"))
	}
}

// replaced replaces names in all texts of v.
func replaced(v any, names *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return names.Replace(v)
	case []any:
		all := []any{}
		for _, each := range v {
			all = append(all, replaced(each, names))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for key, each := range v {
			all[key] = replaced(each, names)
		}
		return all
	}
	return v
}

// May reports whether a role's statements allow a request: one does, and none denies it.
func (p *Policies) May(role string, a Ask) bool {
	allowed := false
	for _, s := range p.statements[role] {
		if !matches(stackfile.At(s, "Action"), a.Action) || !matches(stackfile.At(s, "Resource"), a.Resource) || !a.Meets(stackfile.At(s, "Condition")) {
			continue
		}
		if stackfile.Text(stackfile.At(s, "Effect")) == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

func matches(patterns any, value string) bool {
	return slices.ContainsFunc(stackfile.Texts(patterns), func(pattern string) bool { return Like(pattern, value) })
}

// Meets reports whether every part of a condition holds. ForAllValues holds of a key that is missing, too. It panics on
// an operator that it does not know.
func (a Ask) Meets(condition any) bool {
	operators, _ := condition.(map[string]any)
	for operator, keys := range operators {
		for key, wanted := range keys.(map[string]any) {
			if !compare(operator, a.Keys[key], stackfile.Texts(wanted)) {
				return false
			}
		}
	}
	return true
}

// compare compares the values of a condition key with those that are wanted.
func compare(operator string, values, wanted []string) bool {
	operator, all := strings.CutPrefix(operator, "ForAllValues:")
	var same func(pattern, value string) bool
	switch operator {
	case "Null":
		return (len(values) == 0) == (wanted[0] == "true")
	case "StringEquals", "Bool":
		same = func(pattern, value string) bool { return pattern == value }
	case "StringLike", "ArnLike":
		same = Like
	default:
		panic("iam: condition operator " + operator)
	}
	if !all && len(values) != 1 {
		return false
	}
	return !slices.ContainsFunc(values, func(value string) bool {
		return !slices.ContainsFunc(wanted, func(pattern string) bool { return same(pattern, value) })
	})
}

// Like compares as StringLike does: * is any text, ? one character.
func Like(pattern, value string) bool {
	for i, c := range []byte(pattern) {
		switch {
		case c == '*':
			for from := i; from <= len(value); from++ {
				if Like(pattern[i+1:], value[from:]) {
					return true
				}
			}
			return false
		case i >= len(value) || c != '?' && c != value[i]:
			return false
		}
	}
	return len(pattern) == len(value)
}
