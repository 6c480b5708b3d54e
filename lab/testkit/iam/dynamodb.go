package iam

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// attributes are the attributes of an item, each with its value by its type.
type attributes map[string]map[string]any

// onTable is what of a request to DynamoDB, or of a part of one, IAM can see.
type onTable struct {
	TableName, IndexName, TableArn                                                                        string
	Key, Item                                                                                             attributes
	UpdateExpression, ConditionExpression, ProjectionExpression, FilterExpression, KeyConditionExpression string
	ExpressionAttributeNames                                                                              map[string]string
	ExpressionAttributeValues                                                                             attributes
	Select, ReturnValues                                                                                  string
	// Keys and what follows are of requests for several items.
	Keys          []attributes
	RequestItems  map[string]json.RawMessage
	TransactItems []map[string]onTable
	Statement     string
}

// partiQL are the actions of statements, by their first word.
var partiQL = map[string]string{"SELECT": "Select", "INSERT": "Insert", "UPDATE": "Update", "DELETE": "Delete"}

// dynamoDB returns what a request to DynamoDB asks for.
func (p *Policies) dynamoDB(operation string, body []byte) ([]Ask, error) {
	var r onTable
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	switch operation {
	case "TransactWriteItems", "TransactGetItems":
		var asks []Ask
		for _, item := range r.TransactItems {
			for part, on := range item {
				asks = append(asks, p.onItem(part+"Item", on))
			}
		}
		return asks, nil
	case "BatchGetItem", "BatchWriteItem":
		return p.onItems(operation, r.RequestItems)
	case "ExecuteStatement":
		verb, rest, _ := strings.Cut(r.Statement, " ")
		table := regexp.MustCompile(`"([^"]+)"`).FindStringSubmatch(rest)
		if table == nil || partiQL[verb] == "" {
			return nil, fmt.Errorf("statement %q", r.Statement)
		}
		return []Ask{{Action: "dynamodb:PartiQL" + partiQL[verb], Resource: p.arn("dynamodb", "table/"+table[1])}}, nil
	default:
		return []Ask{p.onItem(operation, r)}, nil
	}
}

// onItem is what a request about one item asks for, or about a table or an index.
func (p *Policies) onItem(operation string, r onTable) Ask {
	a := Ask{Action: "dynamodb:" + operation, Resource: p.arn("dynamodb", "table/"+r.TableName), Keys: map[string][]string{}}
	if r.TableArn != "" {
		a.Resource = r.TableArn
	}
	if r.IndexName != "" {
		a.Resource += "/index/" + r.IndexName
	}
	set := func(key string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			a.Keys["dynamodb:"+key] = values
		}
	}
	set("LeadingKeys", p.leading(r)...)
	set("Attributes", r.named()...)
	set("ReturnValues", r.ReturnValues)
	set("Select", r.Select)
	if r.Select == "" && r.ProjectionExpression != "" {
		set("Select", "SPECIFIC_ATTRIBUTES")
	}
	return a
}

// onItems is what a request for several items asks for: once for each table, with all of its keys.
func (p *Policies) onItems(operation string, tables map[string]json.RawMessage) (asks []Ask, err error) {
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		all := onTable{TableName: table, Item: attributes{}}
		var parts []onTable
		var reads onTable
		var writes []map[string]onTable
		switch {
		case json.Unmarshal(tables[table], &reads) == nil:
			for _, key := range reads.Keys {
				part := reads
				part.Key = key
				parts = append(parts, part)
			}
		case json.Unmarshal(tables[table], &writes) == nil:
			for _, write := range writes {
				parts = slices.AppendSeq(parts, maps.Values(write))
			}
		default:
			return nil, fmt.Errorf("%s of %s: %s", operation, table, tables[table])
		}
		whole := p.onItem(operation, all)
		for _, part := range parts {
			part.TableName = table
			for key, values := range p.onItem(operation, part).Keys {
				whole.Keys[key] = slices.Compact(slices.Sorted(slices.Values(append(whole.Keys[key], values...))))
			}
		}
		asks = append(asks, whole)
	}
	return asks, nil
}

// equals is a comparison of a key condition.
var equals = regexp.MustCompile(`([#\w]+)\s*=\s*(:\w+)`)

// leading are the values of the partition key that a request names.
func (p *Policies) leading(r onTable) (values []string) {
	name := p.partition[r.IndexName]
	for _, at := range []attributes{r.Key, r.Item} {
		if of, has := at[name]; has {
			values = append(values, scalar(of))
		}
	}
	for _, m := range equals.FindAllStringSubmatch(r.KeyConditionExpression, -1) {
		if r.alias(m[1]) == name {
			values = append(values, scalar(r.ExpressionAttributeValues[m[2]]))
		}
	}
	return values
}

func scalar(of map[string]any) string {
	for _, v := range of {
		return fmt.Sprint(v)
	}
	return ""
}

func (r onTable) alias(word string) string {
	if name, is := r.ExpressionAttributeNames[word]; is {
		return name
	}
	return word
}

var (
	// words are paths in an expression, of which the first part is the attribute; and what stands for a value.
	words = regexp.MustCompile(`([:#]?\w+)(?:\.#?\w+|\[\d+\])*`)
	// language are the words that are no attributes.
	language = strings.Fields("SET REMOVE ADD DELETE AND OR NOT BETWEEN IN attribute_exists attribute_not_exists attribute_type begins_with contains size if_not_exists list_append")
)

// named are the attributes that a request names: those at the top, as IAM sees them.
func (r onTable) named() []string {
	all := map[string]bool{}
	for _, at := range []attributes{r.Key, r.Item} {
		for name := range at {
			all[name] = true
		}
	}
	expressions := r.UpdateExpression + " " + r.ConditionExpression + " " + r.ProjectionExpression + " " + r.FilterExpression + " " + r.KeyConditionExpression
	for _, m := range words.FindAllStringSubmatch(expressions, -1) {
		if word := m[1]; !strings.HasPrefix(word, ":") && !slices.Contains(language, word) {
			all[r.alias(word)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
