package deployed

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func goodRecord() emfRecord {
	return emfRecord{
		Namespace: "Makegood", At: time.UnixMilli(1_800_000_000_123), Sets: [][]string{{"Stack"}, {"Stack", "Agent"}},
		Values:  map[string]string{"Stack": "prod", "Agent": "http"},
		Metrics: []emfMetric{{Name: "Saved", Unit: emfCount, Value: 3}, {Name: "Took", Unit: emfMilliseconds, Value: 1.5}},
	}
}

// The line is written out, so that it can be compared with the specification by eye.
func TestALineIsWhatCloudWatchReads(t *testing.T) {
	got, err := goodRecord().Line()
	want := `{"Agent":"http","Saved":3,"Stack":"prod","Took":1.5,"_aws":{"Timestamp":1800000000123,"CloudWatchMetrics":[` +
		`{"Namespace":"Makegood","Dimensions":[["Stack"],["Stack","Agent"]],` +
		`"Metrics":[{"Name":"Saved","Unit":"Count"},{"Name":"Took","Unit":"Milliseconds"}]}]}}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Values of which percentiles are to be made stand in the line one by one.
func TestManyValuesAreAList(t *testing.T) {
	r := goodRecord()
	r.Metrics[1] = emfMetric{Name: "Took", Unit: emfMilliseconds, Values: []float64{1.5, 20}}
	got, err := r.Line()
	if want := `"Took":[1.5,20],`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got %s, %v, want %s in it", got, err, want)
	}
}

// CloudWatch says nothing about a line that it cannot read, so nothing of the kind is written.
func TestALineThatCloudWatchWouldPassOverIsAnError(t *testing.T) {
	many := func(n int) (all []emfMetric) {
		for i := range n {
			all = append(all, emfMetric{Name: fmt.Sprint("m", i), Unit: emfCount})
		}
		return all
	}
	for name, change := range map[string]func(*emfRecord){
		"no namespace":                      func(r *emfRecord) { r.Namespace = "" },
		"no time":                           func(r *emfRecord) { r.At = time.Time{} },
		"no metrics":                        func(r *emfRecord) { r.Metrics = nil },
		"too many metrics":                  func(r *emfRecord) { r.Metrics = many(maxEMFMetrics + 1) },
		"a metric twice":                    func(r *emfRecord) { r.Metrics[1].Name = "Saved" },
		"a metric named as a dimension":     func(r *emfRecord) { r.Metrics[0].Name = "Stack" },
		"a metric named as the metadata":    func(r *emfRecord) { r.Metrics[0].Name = "_aws" },
		"a metric without a unit":           func(r *emfRecord) { r.Metrics[0].Unit = "" },
		"a value that is no number":         func(r *emfRecord) { r.Metrics[0].Value = math.NaN() },
		"too many values":                   func(r *emfRecord) { r.Metrics[0].Values = make([]float64, maxEMFValues+1) },
		"a value among others that is none": func(r *emfRecord) { r.Metrics[0].Values = []float64{1, math.NaN()} },
		"an infinite value":                 func(r *emfRecord) { r.Metrics[0].Value = math.Inf(1) },
		"a dimension without a value":       func(r *emfRecord) { delete(r.Values, "Agent") },
		"a dimension with an empty value":   func(r *emfRecord) { r.Values["Agent"] = "" },
		"a dimension with a long value":     func(r *emfRecord) { r.Values["Agent"] = strings.Repeat("x", 1025) },
	} {
		r := goodRecord()
		change(&r)
		if got, err := r.Line(); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
	r := goodRecord()
	r.Metrics = many(maxEMFMetrics)
	if _, err := r.Line(); err != nil {
		t.Errorf("as many metrics as may be: got %v, want no error", err)
	}
}
