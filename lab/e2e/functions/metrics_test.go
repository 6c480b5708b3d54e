//go:build linux

package functions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// canary stands in payloads for what no log may show.
const canary = "canary-7f3a9c"

// metricLine is a log line that CloudWatch makes metrics of.
type metricLine struct {
	stack, agent string
	values       map[string]float64
}

// metricLines returns the metrics in a function's log, each line held to the rules of the format: what
// breaks one of them is passed over by CloudWatch in silence.
func metricLines(t *testing.T, log string) (lines []metricLine) {
	t.Helper()
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("got the log line %q, want JSON: %v", line, err)
			continue
		}
		if fields["_aws"] == nil {
			continue
		}
		var head struct {
			AWS struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name, Unit string }
				}
			} `json:"_aws"`
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil || len(head.AWS.CloudWatchMetrics) != 1 {
			t.Errorf("got the metrics %s, %v, want one directive", line, err)
			continue
		}
		d := head.AWS.CloudWatchMetrics[0]
		if age := time.Since(time.UnixMilli(head.AWS.Timestamp)); age < -2*time.Hour || age > time.Hour {
			t.Errorf("got the timestamp %d, want that of now in milliseconds", head.AWS.Timestamp)
		}
		if d.Namespace != deployed.MetricsNamespace || len(d.Metrics) == 0 || len(d.Metrics) > 100 || len(d.Dimensions) == 0 {
			t.Errorf("got the metrics %s, want 1 to 100 of namespace %s, with dimensions", line, deployed.MetricsNamespace)
		}
		for _, name := range slices.Concat(d.Dimensions...) {
			if value, ok := fields[name].(string); !ok || value == "" {
				t.Errorf("dimension %s is %v, want a text", name, fields[name])
			}
		}
		m := metricLine{values: map[string]float64{}}
		m.stack, _ = fields[deployed.DimensionStack].(string)
		m.agent, _ = fields[deployed.DimensionAgent].(string)
		for _, metric := range d.Metrics {
			value, ok := fields[metric.Name].(float64)
			if times, many := fields[metric.Name].([]any); many && metric.Unit == "Milliseconds" {
				value, ok = float64(len(times)), true
			}
			if !ok || metric.Unit != "Count" && metric.Unit != "Milliseconds" || !slices.Contains(deployed.Metrics(), metric.Name) {
				t.Errorf("metric %s in %s is %v, want a number under a name that deployed.Metrics has", metric.Name, metric.Unit, fields[metric.Name])
			}
			m.values[metric.Name] = value
		}
		lines = append(lines, m)
	}
	return lines
}

// refusing is an SQS that takes everything, once it has answered the first request by asking for patience.
func refusing(t *testing.T) *httptest.Server {
	t.Helper()
	asked := make(chan struct{}, 1)
	asked <- struct{}{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			QueueName string
			Entries   []struct{ ID string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		select {
		case <-asked:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"ThrottlingException","message":"patience"}`)
			return
		default:
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetQueueUrl") {
			fmt.Fprintf(w, `{"QueueUrl":"http://%s/1/%s"}`, r.Host, request.QueueName)
			return
		}
		taken := []map[string]string{}
		for _, e := range request.Entries {
			taken = append(taken, map[string]string{"Id": e.ID, "MessageId": e.ID})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Successful": taken})
	}))
	t.Cleanup(server.Close)
	return server
}

// poisonous is messages that hold a payload and can never be understood, each in its own way.
func poisonous(t *testing.T) []byte {
	t.Helper()
	var batch events.SQSEvent
	for i, body := range []string{
		canary,
		`{"v":1,"type":"` + canary + `","job":"a"}`,
		`{"v":1,"type":"StepSucceeded","job":"a","step":"s","attempt":"` + canary + `","output":"x"}`,
		`{"v":1,"type":"Submit","workflow":"order","id":"a","input":{"card":"` + canary + `"}`,
		`{"v":1,"type":"Task","agent":"` + canary + `","input":{"card":"` + canary + `"}}`,
		`{"v":1,"type":"StepFailed","job":"a","` + canary + `":1}`,
	} {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	text, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// One line an invocation says what it did, and no line of the log shows what messages held.
func TestAnInvocationWritesItsMetricsAndNoPayloads(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	for function, agent := range map[string]string{"scheduler": "", "agent": "inventory"} {
		l := start(t, build(t, functions+function), environment(refusing(t).URL, "MAKEGOOD_AGENT=inventory", "MAKEGOOD_STACK=prod")...)
		for range 2 {
			if got, want := l.invoke(t, poisonous(t)), (answer{"response", `{"batchItemFailures":[]}`}); got != want {
				t.Errorf("%s: got %+v, want %+v\n%s", function, got, want, l.output)
			}
		}
		// What a process prints arrives in its own time.
		var lines []metricLine
		for until := time.Now().Add(patience); len(lines) < 2 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if strings.Count(l.output.String(), `"_aws"`) == 2 && strings.HasSuffix(l.output.String(), "\n") {
				lines = metricLines(t, l.output.String())
			}
		}
		if len(lines) != 2 || lines[0].stack != "prod" || lines[1].agent != agent {
			t.Fatalf("%s: got %+v, want a line of the stack prod and the agent %q for each invocation\n%s", function, lines, agent, l.output)
		}
		want := map[string]float64{"Poison": 6, "Throttles": 1}
		for i := range lines {
			if !maps.Equal(lines[i].values, want) {
				t.Errorf("%s, invocation %d: got %v, want %v", function, i+1, lines[i].values, want)
			}
			delete(want, "Throttles")
		}
		if strings.Contains(l.output.String(), canary) {
			t.Errorf("%s: the log shows what a message held:\n%s", function, l.output)
		}
	}
}
