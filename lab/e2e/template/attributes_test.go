package template

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
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
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
	"github.com/makegood-dev/makegood/lab/thief"
)

// table answers each write with a failed condition, which says nothing of the item, each read with the item, and
// remembers what was asked, as IAM sees it.
type table struct {
	item     string
	policies *iam.Policies
	asked    []iam.Ask
}

func (d *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	asks, err := d.policies.Asks("dynamodb", r, body)
	if err != nil {
		panic(err)
	}
	d.asked = append(d.asked, asks...)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
		_, _ = io.WriteString(w, `{"Item":`+d.item+`}`)
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no"}`)
}

// claims makes every request that claims and sends heartbeats of agent shop can lead to.
func claims(t *testing.T, policies *iam.Policies) []iam.Ask {
	t.Helper()
	claim := job.Claim{Attempt: 2, LockedBy: "me", StartedAt: time.UnixMilli(1000), CompleteBy: time.UnixMilli(2000)}
	slot, until := store.Slot{Agent: "shop", Job: "a", Birth: "b", Step: "reserve"}, time.UnixMilli(9000)
	const older = `{"Attempt":{"N":"1"},"LockedBy":{"S":"other"},"Closed":{"S":"silent"},"Ends":{"N":"500"},"CompleteBy":{"N":"500"},"StartedAt":{"N":"400"},"ExpiresAt":{"N":"9"}}`
	const mine = `{"Attempt":{"N":"2"},"LockedBy":{"S":"me"},"CompleteBy":{"N":"1500"},"StartedAt":{"N":"1000"},"ExpiresAt":{"N":"9"}}`
	const unwanted = `{"Attempt":{"N":"2"},"LockedBy":{"S":"me"},"Ends":{"N":"1800"},"CompleteBy":{"N":"1500"},"StartedAt":{"N":"1000"},"ExpiresAt":{"N":"9"}}`
	var asked []iam.Ask
	for _, item := range []string{`{}`, older, mine, unwanted} {
		d := &table{item: item, policies: policies}
		server := httptest.NewServer(d)
		defer server.Close()
		jobs, err := dynamostore.New(dynamostore.Config{Table: thief.World().Names["Table"], Index: "CompleteBy", Client: dynamodb.New(dynamodb.Options{
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

// What the agents' role allows is what the code asks, and no more.
func TestAnAgentAsksOnlyForWhatItsRoleAllows(t *testing.T) {
	whole := load(t, withAgent(t, readFile(t, templateFile), "shop"))
	policies := whole.policies()
	operations, attributes := map[string]bool{}, map[string]bool{}
	for _, a := range claims(t, policies) {
		if !policies.May("shopAgentRole", a) {
			t.Errorf("the code asks for %s, which its role does not allow", a)
		}
		if !strings.HasPrefix(a.Action, "dynamodb:") {
			continue
		}
		operations[a.Action] = true
		for _, name := range a.Keys["dynamodb:Attributes"] {
			attributes[name] = true
		}
		for _, role := range []string{"paymentsAgentRole", supervisorRole} {
			if policies.May(role, a) {
				t.Errorf("%s may %s, too", role, a)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(operations)), []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}; !slices.Equal(got, want) {
		t.Errorf("got requests %v, want %v: else the role allows more than is needed", got, want)
	}
	allowed := stackfile.Texts(stackfile.At(whole.Statements("shopAgentRole")[0], "Condition", "ForAllValues:StringEquals", "dynamodb:Attributes"))
	slices.Sort(allowed)
	if got := slices.Sorted(maps.Keys(attributes)); !slices.Equal(got, allowed) {
		t.Errorf("the code names %v, the role allows %v", got, allowed)
	}
}
