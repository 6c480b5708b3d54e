package costmeter

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func blob(n int) types.AttributeValue      { return &types.AttributeValueMemberB{Value: make([]byte, n)} }

func TestSizesAreThoseOfTheDocumentation(t *testing.T) {
	for name, c := range map[string]struct {
		value types.AttributeValue
		want  int
	}{
		"text in UTF-8":              {text("Zoë"), 4},
		"two digits":                 {number("27"), 2},
		"three digits":               {number("276"), 3},
		"zeros at its ends":          {number("00270000"), 2},
		"a fraction":                 {number("0.0027"), 2},
		"a minus":                    {number("-27"), 3},
		"an exponent":                {number("2.7E+20"), 2},
		"zero":                       {number("0"), 1},
		"bytes":                      {blob(5), 5},
		"true":                       {&types.AttributeValueMemberBOOL{Value: true}, 1},
		"null":                       {&types.AttributeValueMemberNULL{Value: true}, 1},
		"a set":                      {&types.AttributeValueMemberSS{Value: []string{"ab", "c"}}, 3},
		"a set of numbers":           {&types.AttributeValueMemberNS{Value: []string{"27", "276"}}, 5},
		"a set of bytes":             {&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}, 3},
		"an empty list":              {&types.AttributeValueMemberL{}, 3},
		"a list of two":              {&types.AttributeValueMemberL{Value: []types.AttributeValue{text("ab"), text("c")}}, 8},
		"a map with names":           {&types.AttributeValueMemberM{Value: item{"abc": text("de")}}, 9},
		"a map in a map, each its 3": {&types.AttributeValueMemberM{Value: item{"a": &types.AttributeValueMemberM{}}}, 8},
	} {
		if got := sizeOf(item{"name": c.value}); got != 4+c.want {
			t.Errorf("%s: got %d bytes, want %d and 4 for the attribute's name", name, got, c.want)
		}
	}
}

// schema is a table like ours: an index of the keys alone, and one of everything.
func schema() *dynamodb.CreateTableInput {
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	index := func(name, hash string, kind types.ProjectionType, rest ...string) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{
			IndexName: &name, KeySchema: []types.KeySchemaElement{key(hash, types.KeyTypeHash)},
			Projection: &types.Projection{ProjectionType: kind, NonKeyAttributes: rest},
		}
	}
	return &dynamodb.CreateTableInput{
		TableName: aws.String("jobs"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{key("PK", types.KeyTypeHash), key("SK", types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{attribute("PK"), attribute("SK"), attribute("Due"), attribute("All"), attribute("Some")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			index("due", "Due", types.ProjectionTypeKeysOnly), index("all", "All", types.ProjectionTypeAll),
			index("some", "Some", types.ProjectionTypeInclude, "Note"),
		},
	}
}

func with(more item) item {
	it := item{"PK": text("p"), "SK": text("s")}
	maps.Copy(it, more)
	return it
}

func TestAWritePaysForTheLargerImageAndForWhatChangesInEachIndex(t *testing.T) {
	large := text(strings.Repeat("x", 1500))
	for name, c := range map[string]struct {
		before, after item
		table         float64
		indexes       map[string]float64
	}{
		"born outside of every index":         {nil, with(nil), 1, nil},
		"born into an index":                  {nil, with(item{"Due": text("1")}), 1, map[string]float64{"due": 1}},
		"an entry is smaller than its item":   {nil, with(item{"Due": text("1"), "Data": large}), 2, map[string]float64{"due": 1}},
		"an entry of everything is as large":  {nil, with(item{"All": text("1"), "Data": large}), 2, map[string]float64{"all": 2}},
		"nothing of the entry changes":        {with(item{"Due": text("1")}), with(item{"Due": text("1"), "Data": large}), 2, nil},
		"the key moves":                       {with(item{"Due": text("1")}), with(item{"Due": text("2")}), 1, map[string]float64{"due": 2}},
		"the key goes":                        {with(item{"Due": text("1")}), with(nil), 1, map[string]float64{"due": 1}},
		"the key comes":                       {with(nil), with(item{"Due": text("1")}), 1, map[string]float64{"due": 1}},
		"what is projected changes":           {with(item{"Some": text("1")}), with(item{"Some": text("1"), "Note": large}), 2, map[string]float64{"some": 2}},
		"what is not projected changes":       {with(item{"Some": text("1")}), with(item{"Some": text("1"), "Data": large}), 2, nil},
		"it shrinks and pays for what it was": {with(item{"Data": large}), with(nil), 2, nil},
		"it is deleted":                       {with(item{"Due": text("1"), "Data": large}), nil, 2, map[string]float64{"due": 1}},
		"nothing is deleted":                  {nil, nil, 1, nil},
		"a large entry moves":                 {with(item{"All": text("1"), "Data": large}), with(item{"All": text("2"), "Data": large}), 2, map[string]float64{"all": 4}},
	} {
		units, indexes := newTable(schema()).write(c.before, c.after)
		if units != c.table || !maps.Equal(indexes, c.indexes) {
			t.Errorf("%s: got %v and %v of the indexes, want %v and %v", name, units, indexes, c.table, c.indexes)
		}
	}
}

// A condition that is not met is paid for by the size of what is there or was to be there; other refusals are free.
func TestAFailedConditionIsPaidForAndARefusalIsNot(t *testing.T) {
	large := with(item{"Data": text(strings.Repeat("x", 1500))})
	failed := func(have item) error { return &types.ConditionalCheckFailedException{Item: have} }
	put := &dynamodb.PutItemInput{TableName: aws.String("jobs"), Item: large}
	update := &dynamodb.UpdateItemInput{TableName: aws.String("jobs"), Key: with(nil), ExpressionAttributeValues: item{":d": blob(600)}}
	for name, c := range map[string]struct {
		input any
		err   error
		want  float64
	}{
		"a put over nothing":                   {put, failed(nil), 2},
		"an update of a large item":            {update, failed(large), 3},
		"an update of a small item":            {update, failed(with(nil)), 1},
		"an update of nothing":                 {update, failed(nil), 1},
		"throttled":                            {update, &smithy.GenericAPIError{Code: "ThrottlingException", Fault: smithy.FaultClient}, 0},
		"a server's error is in doubt":         {update, &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}, 0},
		"an answer that is lost is in doubt":   {update, errors.New("connection reset"), 0},
		"a read that is lost is in doubt, too": {&dynamodb.GetItemInput{}, errors.New("connection reset"), 0},
	} {
		m := New(Config{Tables: []*dynamodb.CreateTableInput{schema()}})
		e := m.dynamo(c.input, nil, c.err)
		if e.Table != c.want || (e.Doubt != "") != strings.Contains(name, "doubt") || e.Failed != (c.want > 0) {
			t.Errorf("%s: got %+v, want %v units", name, e, c.want)
		}
	}
}

func TestAReadPaysByWhatItWentThrough(t *testing.T) {
	of := func(bytes int) item { return with(item{"Data": blob(bytes)}) } // 10 bytes more
	m := New(Config{Tables: []*dynamodb.CreateTableInput{schema()}})
	strong := aws.Bool(true)
	jobs := aws.String("jobs")
	keys := make([]item, 3)
	for name, c := range map[string]struct {
		input, output any
		want          float64
	}{
		"nothing":                {&dynamodb.GetItemInput{ConsistentRead: strong}, &dynamodb.GetItemOutput{}, 1},
		"nothing, eventually":    {&dynamodb.GetItemInput{}, &dynamodb.GetItemOutput{}, 0.5},
		"4 KB":                   {&dynamodb.GetItemInput{ConsistentRead: strong}, &dynamodb.GetItemOutput{Item: of(4086)}, 1},
		"a byte more":            {&dynamodb.GetItemInput{ConsistentRead: strong}, &dynamodb.GetItemOutput{Item: of(4087)}, 2},
		"a byte more, by halves": {&dynamodb.GetItemInput{}, &dynamodb.GetItemOutput{Item: of(4087)}, 1},
		"a query sums up": {
			&dynamodb.QueryInput{TableName: jobs, ConsistentRead: strong}, &dynamodb.QueryOutput{Items: []item{of(2000), of(2000), of(2000)}}, 2,
		},
		"a batch does not": {
			&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"jobs": {Keys: keys, ConsistentRead: strong}}},
			&dynamodb.BatchGetItemOutput{Responses: map[string][]item{"jobs": {of(2000), of(2000)}}}, 3,
		},
	} {
		if e := m.dynamo(c.input, c.output, nil); e.Read != c.want || e.Doubt != "" {
			t.Errorf("%s: got %+v, want %v read units", name, e, c.want)
		}
	}
	hidden := m.dynamo(&dynamodb.GetItemInput{TableName: jobs, ProjectionExpression: aws.String("PK, SK")}, &dynamodb.GetItemOutput{Item: with(nil)}, nil)
	if hidden.Doubt == "" {
		t.Errorf("a projection of an item that was never seen: got %+v, want a doubt", hidden)
	}
	if e := m.dynamo(&dynamodb.ScanInput{}, &dynamodb.ScanOutput{}, nil); e.Doubt == "" {
		t.Errorf("a request without a rule: got %+v, want a doubt", e)
	}
}

// A transaction pays twice for each of its items, and once for what changes in an index; so does one that is cancelled, but for
// the index.
func TestATransactionPaysTwiceForEachOfItsItems(t *testing.T) {
	jobs := aws.String("jobs")
	large := with(item{"Due": text("1"), "Data": blob(1500)})
	put := types.TransactWriteItem{Put: &types.Put{TableName: jobs, Item: large}}
	check := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: jobs, Key: with(nil)}}
	remove := types.TransactWriteItem{Delete: &types.Delete{TableName: jobs, Key: with(nil)}}
	other := types.TransactWriteItem{Put: &types.Put{TableName: jobs, Item: item{"PK": text("p"), "SK": text("t")}}}
	update := types.TransactWriteItem{Update: &types.Update{TableName: jobs, Key: with(nil), ExpressionAttributeValues: item{":d": blob(600)}}}
	cancelled := &types.TransactionCanceledException{}
	for name, c := range map[string]struct {
		before  item
		items   []types.TransactWriteItem
		err     error
		table   float64
		indexes map[string]float64
		doubt   bool
	}{
		"born into an index":                    {nil, []types.TransactWriteItem{put, other}, nil, 6, map[string]float64{"due": 1}, false},
		"cancelled":                             {nil, []types.TransactWriteItem{put, other}, cancelled, 6, nil, false},
		"a check of what is not there":          {nil, []types.TransactWriteItem{check}, nil, 2, nil, false},
		"a check of what is large":              {large, []types.TransactWriteItem{check, other}, nil, 6, nil, false},
		"deleted":                               {large, []types.TransactWriteItem{remove}, nil, 4, map[string]float64{"due": 1}, false},
		"an update of a table with indexes":     {large, []types.TransactWriteItem{update}, nil, 4, nil, true},
		"refused before it began":               {nil, []types.TransactWriteItem{put}, &smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient}, 0, nil, false},
		"no answer":                             {nil, []types.TransactWriteItem{put}, errors.New("connection reset"), 0, nil, true},
		"a table that nobody has said anything": {nil, []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("other"), Item: large}}}, nil, 0, nil, true},
	} {
		m := New(Config{Tables: []*dynamodb.CreateTableInput{schema()}})
		if c.before != nil {
			m.dynamo(&dynamodb.PutItemInput{TableName: jobs, Item: c.before}, &dynamodb.PutItemOutput{}, nil)
		}
		e := m.dynamo(&dynamodb.TransactWriteItemsInput{TransactItems: c.items}, &dynamodb.TransactWriteItemsOutput{}, c.err)
		if e.Table != c.table || !maps.Equal(e.Indexes, c.indexes) || (e.Doubt != "") != c.doubt || e.Failed != (c.err == error(cancelled)) {
			t.Errorf("%s: got %+v, want %v and %v of the indexes", name, e, c.table, c.indexes)
		}
	}
}

// An update in a transaction shows nobody what it made, so it must not matter how much that is.
func TestAnUpdateInATransactionIsInDoubtWhereItMayCostMore(t *testing.T) {
	plain := schema()
	plain.GlobalSecondaryIndexes = nil
	m := New(Config{Tables: []*dynamodb.CreateTableInput{plain}})
	for bytes, doubt := range map[int]bool{600: false, 1100: true} {
		update := types.TransactWriteItem{Update: &types.Update{TableName: plain.TableName, Key: with(nil), ExpressionAttributeValues: item{":d": blob(bytes)}}}
		e := m.dynamo(&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{update}}, &dynamodb.TransactWriteItemsOutput{}, nil)
		if e.Table != 2 || (e.Doubt != "") != doubt {
			t.Errorf("%d bytes: got %+v, want 2 units, in doubt: %v", bytes, e, doubt)
		}
	}
}

func TestSQSBillsARequestForEach64KBOfAllItsMessages(t *testing.T) {
	send := func(sizes ...int) *sqs.SendMessageBatchInput {
		in := &sqs.SendMessageBatchInput{}
		for _, n := range sizes {
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{MessageBody: aws.String(strings.Repeat("x", n))})
		}
		return in
	}
	received := &sqs.ReceiveMessageOutput{Messages: []sqstypes.Message{{Body: aws.String(strings.Repeat("x", 40<<10))}, {Body: aws.String(strings.Repeat("x", 40<<10))}}}
	for name, c := range map[string]struct {
		input, output any
		requests      int
	}{
		"ten small ones":  {send(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), nil, 1},
		"64 KB":           {send(32<<10, 32<<10), nil, 1},
		"a byte more":     {send(32<<10, 32<<10+1), nil, 2},
		"an empty answer": {&sqs.ReceiveMessageInput{}, &sqs.ReceiveMessageOutput{}, 1},
		"80 KB received":  {&sqs.ReceiveMessageInput{}, received, 2},
		"a deletion":      {&sqs.DeleteMessageBatchInput{}, nil, 1},
	} {
		if e := sqsEntry(c.input, c.output, nil); e.Requests != c.requests || e.Doubt != "" {
			t.Errorf("%s: got %+v, want %d requests", name, e, c.requests)
		}
	}
	if e := sqsEntry(send(1), nil, errors.New("connection reset")); e.Requests != 1 || e.Doubt == "" {
		t.Errorf("no answer: got %+v, want one request, in doubt", e)
	}
}

// What an index pays depends on what the item was: the meter remembers what each write made of it.
func TestTheShadowIsWhatTheLastWriteMade(t *testing.T) {
	m := New(Config{Tables: []*dynamodb.CreateTableInput{schema()}})
	jobs := aws.String("jobs")
	due := func(key string) item { return with(item{"Due": text(key)}) }
	put := func(key string) func() Entry {
		return func() Entry {
			return m.dynamo(&dynamodb.PutItemInput{TableName: jobs, Item: due(key)}, &dynamodb.PutItemOutput{}, nil)
		}
	}
	update := func(key string) func() Entry {
		return func() Entry {
			in := &dynamodb.UpdateItemInput{TableName: jobs, Key: with(nil), ReturnValues: types.ReturnValueAllNew}
			return m.dynamo(in, &dynamodb.UpdateItemOutput{Attributes: due(key)}, nil)
		}
	}
	fails := func(have item, err error) func() Entry {
		return func() Entry {
			if err == nil {
				err = &types.ConditionalCheckFailedException{Item: have}
			}
			return m.dynamo(&dynamodb.PutItemInput{TableName: jobs, Item: due("0")}, nil, err)
		}
	}
	remove := func() Entry {
		return m.dynamo(&dynamodb.DeleteItemInput{TableName: jobs, Key: with(nil)}, &dynamodb.DeleteItemOutput{}, nil)
	}
	for i, step := range []struct {
		what string
		do   func() Entry
		want float64 // of the index
	}{
		{"born", put("1"), 1},
		{"the same again", put("1"), 0},
		{"the key moves", update("2"), 2},
		{"and stays", update("2"), 0},
		{"a condition fails", fails(due("3"), nil), 0},
		{"which showed what is there", update("3"), 0},
		{"deleted", remove, 1},
		{"deleted again", remove, 0},
		{"born again", put("1"), 1},
		{"an answer is lost", fails(nil, errors.New("connection reset")), 0},
		{"so that nothing is known of it", update("1"), 1},
	} {
		if e := step.do(); e.Indexes["due"] != step.want {
			t.Errorf("%d, %s: got %+v, want %v units of the index", i+1, step.what, e, step.want)
		}
	}
}
