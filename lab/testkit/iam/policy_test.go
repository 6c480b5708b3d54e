package iam

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A small template, so that what the judgements rest on is seen to work.
const small = `
Parameters: {Wide: {Default: "no"}}
Conditions: {IsWide: !Equals [!Ref Wide, "yes"]}
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{AttributeName: PK, KeyType: HASH}, {AttributeName: SK, KeyType: RANGE}]
      GlobalSecondaryIndexes: [{IndexName: CompleteBy, KeySchema: [{AttributeName: Shard, KeyType: HASH}, {AttributeName: CompleteBy, KeyType: RANGE}]}]
      SSESpecification: {KMSMasterKeyId: !Ref Key}
  Key: {Type: AWS::KMS::Key}
  Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub "${AWS::StackName}-q"}}
  Role:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyName: own
          PolicyDocument:
            Statement:
              - {Effect: Allow, Action: ["dynamodb:GetItem", "dynamodb:Query"], Resource: !GetAtt Table.Arn, Condition: {"ForAllValues:StringLike": {dynamodb:LeadingKeys: ["own#*"]}, "Null": {dynamodb:LeadingKeys: false}}}
              - {Effect: Allow, Action: "kms:*", Resource: !GetAtt Key.Arn}
              - {Effect: Deny, Action: sqs:DeleteMessage, Resource: "*"}
  Wider:
    Type: AWS::IAM::Policy
    Condition: IsWide
    Properties: {Roles: [!Ref Role], PolicyDocument: {Statement: [{Effect: Allow, Action: ["sqs:*", "dynamodb:Query"], Resource: [!GetAtt Queue.Arn, !Sub "${Table.Arn}/index/CompleteBy"]}]}}
`

func load(t *testing.T, parameters map[string]any) *Policies {
	t.Helper()
	p, err := Load(small, parameters, World{Region: "eu-central-1", Account: "1", Stack: "s", Names: map[string]string{"Table": "jobs"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reason is why a request is refused; empty: it is not.
func reason(t *testing.T, p *Policies, service, target, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://aws/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", target)
	return (&Judge{Policies: p}).judge("Role", service, r, []byte(body))
}

func TestARequestIsAllowedByAStatementThatNamesItsActionItsResourceAndItsKeys(t *testing.T) {
	wide := map[string]any{"Wide": "yes"}
	for _, c := range []struct {
		what, service, operation, body string
		parameters                     map[string]any
		refused                        string
	}{
		{"its own item", "dynamodb", "GetItem", `{"TableName":"jobs","Key":{"PK":{"S":"own#1"},"SK":{"S":"x"}}}`, nil, ""},
		{"another's item", "dynamodb", "GetItem", `{"TableName":"jobs","Key":{"PK":{"S":"other#1"},"SK":{"S":"x"}}}`, nil, "other#1"},
		{"another table", "dynamodb", "GetItem", `{"TableName":"other","Key":{"PK":{"S":"own#1"}}}`, nil, "table/other"},
		{"another action", "dynamodb", "PutItem", `{"TableName":"jobs","Item":{"PK":{"S":"own#1"}}}`, nil, "dynamodb:PutItem"},
		{"a request without a key", "dynamodb", "Query", `{"TableName":"jobs"}`, nil, "dynamodb:Query"},
		{"a query of its own", "dynamodb", "Query", `{"TableName":"jobs","KeyConditionExpression":"#p = :p AND SK = :s","ExpressionAttributeNames":{"#p":"PK"},"ExpressionAttributeValues":{":p":{"S":"own#1"},":s":{"S":"other"}}}`, nil, ""},
		{"a query of another's", "dynamodb", "Query", `{"TableName":"jobs","KeyConditionExpression":"SK = :s AND PK = :p","ExpressionAttributeValues":{":p":{"S":"other#1"},":s":{"S":"own#1"}}}`, nil, "other#1"},
		{"an index, where nobody gave it", "dynamodb", "Query", `{"TableName":"jobs","IndexName":"CompleteBy"}`, nil, "index/CompleteBy"},
		{"an index, by a policy whose condition holds", "dynamodb", "Query", `{"TableName":"jobs","IndexName":"CompleteBy"}`, wide, ""},
		{"a transaction of which one part is not its own", "dynamodb", "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"jobs","Key":{"PK":{"S":"own#1"}}}},{"Get":{"TableName":"jobs","Key":{"PK":{"S":"other#1"}}}}]}`, nil, "other#1"},
		{"a batch to a queue", "sqs", "SendMessageBatch", `{"QueueUrl":"http://x/1/s-q"}`, wide, ""},
		{"a queue that is another's", "sqs", "SendMessage", `{"QueueUrl":"http://x/1/other-q"}`, wide, "other-q"},
		{"what is denied, though it is allowed", "sqs", "DeleteMessage", `{"QueueUrl":"http://x/1/s-q"}`, wide, "sqs:DeleteMessage"},
		{"a service that is not known", "glacier", "X", `{}`, wide, "glacier"},
	} {
		why := reason(t, load(t, c.parameters), c.service, "Any."+c.operation, c.body)
		if (why == "") != (c.refused == "") || !strings.Contains(why, c.refused) {
			t.Errorf("%s: got %q, want it refused for %q", c.what, why, c.refused)
		}
	}
}

// What the table is encrypted with is asked for in the name of whoever reads it.
func TestWhoMayNotUseTheKeyMayNotReadWhatItEncrypts(t *testing.T) {
	p := load(t, nil)
	without, err := Load(strings.Replace(small, `Action: "kms:*"`, `Action: "kms:Decrypt"`, 1), nil, p.World)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"TableName":"jobs","Key":{"PK":{"S":"own#1"}}}`
	if why := reason(t, without, "dynamodb", "Any.GetItem", body); !strings.Contains(why, "kms:Encrypt") {
		t.Errorf("got %q, want it refused for the key", why)
	}
}

func TestTheAttributesOfARequestAreThoseAtTheTop(t *testing.T) {
	p := load(t, nil)
	asks, err := p.dynamoDB("UpdateItem", []byte(`{"TableName":"jobs","Key":{"PK":{"S":"a"},"SK":{"S":"b"}},
		"UpdateExpression":"SET #a.#b = if_not_exists(Plain, :zero), List[0] = :v REMOVE Gone","ConditionExpression":"attribute_exists(#c) AND NOT size(Wide) < :n",
		"ExpressionAttributeNames":{"#a":"Top","#b":"Below","#c":"Checked"}}`))
	if err != nil || len(asks) != 1 {
		t.Fatalf("got %v, %v", asks, err)
	}
	got, want := asks[0].Keys["dynamodb:Attributes"], []string{"Checked", "Gone", "List", "PK", "Plain", "SK", "Top", "Wide"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestConditionsHoldAsThoseOfIAM(t *testing.T) {
	for _, c := range []struct {
		operator       string
		values, wanted []string
		holds          bool
	}{
		{"StringEquals", []string{"a"}, []string{"b", "a"}, true},
		{"StringEquals", nil, []string{"a"}, false},
		{"StringEquals", []string{"a*"}, []string{"ab"}, false},
		{"StringLike", []string{"a/b#c"}, []string{"a*c"}, true},
		{"StringLike", []string{"ab"}, []string{"a?c"}, false},
		{"ForAllValues:StringEquals", nil, []string{"a"}, true},
		{"ForAllValues:StringEquals", []string{"a", "b"}, []string{"b", "a", "c"}, true},
		{"ForAllValues:StringEquals", []string{"a", "d"}, []string{"a", "b"}, false},
		{"ForAllValues:StringLike", []string{"x#1", "x#2"}, []string{"x#*"}, true},
		{"Null", nil, []string{"true"}, true},
		{"Null", []string{"a"}, []string{"true"}, false},
		{"Null", []string{"a"}, []string{"false"}, true},
		{"Bool", []string{"false"}, []string{"false"}, true},
		{"ArnLike", []string{"arn:a:b"}, []string{"arn:*"}, true},
	} {
		if got := compare(c.operator, c.values, c.wanted); got != c.holds {
			t.Errorf("%s of %q against %q: got %v, want %v", c.operator, c.values, c.wanted, got, c.holds)
		}
	}
	for pattern, value := range map[string]string{"": "", "*": "", "a*b*": "a/x/b", "**": "x", "?": "y"} {
		if !Like(pattern, value) {
			t.Errorf("%q is not like %q", value, pattern)
		}
	}
	for pattern, value := range map[string]string{"": "a", "a": "ab", "ab": "a", "*a": "b", "?": ""} {
		if Like(pattern, value) {
			t.Errorf("%q is like %q", value, pattern)
		}
	}
}
