package template

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// request is what of a request to DynamoDB IAM's conditions can see.
type request struct {
	operation                             string
	Key                                   map[string]any
	UpdateExpression, ConditionExpression string
	ExpressionAttributeNames              map[string]string
	ReturnValues                          string
}

// table answers each request with a failed condition on this item, and remembers what was asked.
type table struct {
	item  string
	asked []request
}

func (d *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	asked := request{operation: operation}
	if err := json.Unmarshal(body, &asked); err != nil {
		panic(err)
	}
	d.asked = append(d.asked, asked)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":`+d.item+`}`)
}

// aliases are the names in an expression, each with what is before it: a name after a dot is of an inner attribute.
var aliases = regexp.MustCompile(`\.?#\w+|\bPK\b`)

// attributes gives the attributes of the item that a request names.
func (r request) attributes() []string {
	named := map[string]bool{}
	for key := range r.Key {
		named[key] = true
	}
	for _, alias := range aliases.FindAllString(r.UpdateExpression+" "+r.ConditionExpression, -1) {
		if name, ok := r.ExpressionAttributeNames[alias]; ok {
			named[name] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// IAM is not enforced by any stand-in, so this compares what the agents' role allows with what the code asks: a
// claim, one that lowers the key, a heartbeat, and one of a withdrawn attempt.
func TestAnAgentAsksOnlyForWhatItsRoleAllows(t *testing.T) {
	claim := makegood.Claim{Attempt: 1, LockedBy: "me", StartedAt: time.UnixMilli(1000), CompleteBy: time.UnixMilli(2000)}
	const late = `"CompleteBy":{"N":"9000"},"Open":{"M":{"reserve":{"N":"1"}}}`
	const mine = `"Claims":{"M":{"reserve":{"M":{"Attempt":{"N":"1"},"LockedBy":{"S":"me"}}}}}`
	var asked []request
	for _, item := range []string{`{` + late + `}`, `{` + mine + `}`} {
		d := &table{item: item}
		server := httptest.NewServer(d)
		defer server.Close()
		store, err := dynamostore.New(dynamostore.Config{Table: "jobs", Index: "CompleteBy", Client: dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		})})
		if err != nil {
			t.Fatal(err)
		}
		// What they answer is storetest's; here it is what they ask.
		_ = store.Claim(t.Context(), "a", "reserve", claim)
		_ = store.Beat(t.Context(), "a", "reserve", claim)
		asked = append(asked, d.asked...)
	}
	named := map[string]bool{}
	for _, r := range asked {
		if r.operation != "UpdateItem" || r.ReturnValues != "" && r.ReturnValues != "NONE" {
			t.Errorf("got %s that returns %q, want UpdateItem that returns nothing", r.operation, r.ReturnValues)
		}
		for _, name := range r.attributes() {
			named[name] = true
		}
	}
	whole := load(t, readFile(t, templateFile))
	for _, agent := range whole.agents() {
		allowed := texts(at(whole.statements(agent + "AgentRole")[0], "Condition", "ForAllValues:StringEquals", "dynamodb:Attributes"))
		slices.Sort(allowed)
		if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, allowed) {
			t.Errorf("agent %s: the code names %v, the role allows %v", agent, got, allowed)
		}
	}
	if len(asked) < 6 {
		t.Errorf("got %d requests, want those of two claims and two heartbeats, and a second of some", len(asked))
	}
}
