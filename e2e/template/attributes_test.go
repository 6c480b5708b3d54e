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

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// request is what of a request to DynamoDB IAM's conditions can see.
type request struct {
	operation                             string
	Key, Item                             map[string]map[string]string
	UpdateExpression, ConditionExpression string
	ExpressionAttributeNames              map[string]string
}

// table answers each write with a failed condition, which says nothing of the item, each read with the item, and
// remembers what was asked.
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
	if operation == "GetItem" {
		_, _ = io.WriteString(w, `{"Item":`+d.item+`}`)
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no"}`)
}

// named are the words in an expression: names, aliases of names and of values, and what is the language's own.
var named = regexp.MustCompile(`[:#]?\w+`)

// attributes returns the attributes of the item that a request names.
func (r request) attributes() []string {
	all := map[string]bool{}
	for name := range r.Key {
		all[name] = true
	}
	for name := range r.Item {
		all[name] = true
	}
	language := []string{"SET", "REMOVE", "AND", "OR", "attribute_exists", "attribute_not_exists"}
	for _, word := range named.FindAllString(r.UpdateExpression+" "+r.ConditionExpression, -1) {
		if name, ok := r.ExpressionAttributeNames[word]; ok {
			word = name
		}
		if !strings.HasPrefix(word, ":") && !slices.Contains(language, word) {
			all[word] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (r request) ask() ask {
	key := r.Key["PK"]["S"] + r.Item["PK"]["S"] // It has one of the two.
	return onTable(r.operation, key, r.attributes()...)
}

// claims makes every request that claims and sends heartbeats of agent shop can lead to.
func claims(t *testing.T) []request {
	t.Helper()
	claim := job.Claim{Attempt: 2, LockedBy: "me", StartedAt: time.UnixMilli(1000), CompleteBy: time.UnixMilli(2000)}
	slot, until := store.Slot{Agent: "shop", Job: "a", Birth: "b", Step: "reserve"}, time.UnixMilli(9000)
	const older = `{"Attempt":{"N":"1"},"LockedBy":{"S":"other"},"Closed":{"S":"silent"},"Ends":{"N":"500"},"CompleteBy":{"N":"500"},"StartedAt":{"N":"400"},"ExpiresAt":{"N":"9"}}`
	const mine = `{"Attempt":{"N":"2"},"LockedBy":{"S":"me"},"CompleteBy":{"N":"1500"},"StartedAt":{"N":"1000"},"ExpiresAt":{"N":"9"}}`
	const unwanted = `{"Attempt":{"N":"2"},"LockedBy":{"S":"me"},"Ends":{"N":"1800"},"CompleteBy":{"N":"1500"},"StartedAt":{"N":"1000"},"ExpiresAt":{"N":"9"}}`
	var asked []request
	for _, item := range []string{`{}`, older, mine, unwanted} {
		d := &table{item: item}
		server := httptest.NewServer(d)
		defer server.Close()
		jobs, err := dynamostore.New(dynamostore.Config{Table: "jobs", Index: "CompleteBy", Client: dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		})})
		if err != nil {
			t.Fatal(err)
		}
		// What they answer is storetest's; here it is what they ask.
		_ = jobs.Claim(t.Context(), slot, claim, until)
		_ = jobs.Claim(t.Context(), slot, claim, time.UnixMilli(1)) // too late
		_, _ = jobs.Heartbeat(t.Context(), slot, claim, until)
		reporting := claim
		reporting.Progress = job.Progress{Value: "1", At: time.UnixMilli(1500)}
		_, _ = jobs.Heartbeat(t.Context(), slot, reporting, until)
		asked = append(asked, d.asked...)
	}
	return asked
}

// IAM is not enforced by any stand-in, so this compares what the agents' role allows with what the code asks.
func TestAnAgentAsksOnlyForWhatItsRoleAllows(t *testing.T) {
	whole := load(t, withAgent(t, readFile(t, templateFile), "shop"))
	operations, attributes := map[string]bool{}, map[string]bool{}
	for _, r := range claims(t) {
		operations[r.operation] = true
		for _, name := range r.attributes() {
			attributes[name] = true
		}
		if !whole.may("shopAgentRole", r.ask()) {
			t.Errorf("the code asks for %s of %v, which its role does not allow", r.operation, r.ask().keys)
		}
		for _, role := range []string{"paymentsAgentRole", "SupervisorRole"} {
			if whole.may(role, r.ask()) {
				t.Errorf("%s may %s of %v, too", role, r.operation, r.ask().keys)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(operations)), []string{"GetItem", "UpdateItem"}; !slices.Equal(got, want) {
		t.Errorf("got requests %v, want %v: else the role allows more than is needed", got, want)
	}
	allowed := texts(at(whole.statements("shopAgentRole")[0], "Condition", "ForAllValues:StringEquals", "dynamodb:Attributes"))
	slices.Sort(allowed)
	if got := slices.Sorted(maps.Keys(attributes)); !slices.Equal(got, allowed) {
		t.Errorf("the code names %v, the role allows %v", got, allowed)
	}
}
