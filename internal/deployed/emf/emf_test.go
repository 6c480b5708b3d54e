package emf_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/deployed/emf"
)

func good() emf.Record {
	return emf.Record{
		Namespace: "Makegood", At: time.UnixMilli(1_800_000_000_123), Sets: [][]string{{"Stack"}, {"Stack", "Agent"}},
		Values:  map[string]string{"Stack": "prod", "Agent": "http"},
		Metrics: []emf.Metric{{Name: "Saved", Unit: emf.Count, Value: 3}, {Name: "Took", Unit: emf.Milliseconds, Value: 1.5}},
	}
}

// The line is written out, so that it can be compared with the specification by eye.
func TestALineIsWhatCloudWatchReads(t *testing.T) {
	got, err := good().Line()
	want := `{"Agent":"http","Saved":3,"Stack":"prod","Took":1.5,"_aws":{"Timestamp":1800000000123,"CloudWatchMetrics":[` +
		`{"Namespace":"Makegood","Dimensions":[["Stack"],["Stack","Agent"]],` +
		`"Metrics":[{"Name":"Saved","Unit":"Count"},{"Name":"Took","Unit":"Milliseconds"}]}]}}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Values of which percentiles are to be made stand in the line one by one.
func TestManyValuesAreAList(t *testing.T) {
	r := good()
	r.Metrics[1] = emf.Metric{Name: "Took", Unit: emf.Milliseconds, Values: []float64{1.5, 20}}
	got, err := r.Line()
	if want := `"Took":[1.5,20],`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got %s, %v, want %s in it", got, err, want)
	}
}

// CloudWatch says nothing about a line that it cannot read, so nothing of the kind is written.
func TestALineThatCloudWatchWouldPassOverIsAnError(t *testing.T) {
	many := func(n int) (all []emf.Metric) {
		for i := range n {
			all = append(all, emf.Metric{Name: fmt.Sprint("m", i), Unit: emf.Count})
		}
		return all
	}
	for name, change := range map[string]func(*emf.Record){
		"no namespace":                      func(r *emf.Record) { r.Namespace = "" },
		"no time":                           func(r *emf.Record) { r.At = time.Time{} },
		"no metrics":                        func(r *emf.Record) { r.Metrics = nil },
		"too many metrics":                  func(r *emf.Record) { r.Metrics = many(emf.MaxMetrics + 1) },
		"a metric twice":                    func(r *emf.Record) { r.Metrics[1].Name = "Saved" },
		"a metric named as a dimension":     func(r *emf.Record) { r.Metrics[0].Name = "Stack" },
		"a metric named as the metadata":    func(r *emf.Record) { r.Metrics[0].Name = "_aws" },
		"a metric without a unit":           func(r *emf.Record) { r.Metrics[0].Unit = "" },
		"a value that is no number":         func(r *emf.Record) { r.Metrics[0].Value = math.NaN() },
		"too many values":                   func(r *emf.Record) { r.Metrics[0].Values = make([]float64, emf.MaxValues+1) },
		"a value among others that is none": func(r *emf.Record) { r.Metrics[0].Values = []float64{1, math.NaN()} },
		"an infinite value":                 func(r *emf.Record) { r.Metrics[0].Value = math.Inf(1) },
		"a dimension without a value":       func(r *emf.Record) { delete(r.Values, "Agent") },
		"a dimension with an empty value":   func(r *emf.Record) { r.Values["Agent"] = "" },
		"a dimension with a long value":     func(r *emf.Record) { r.Values["Agent"] = strings.Repeat("x", 1025) },
	} {
		r := good()
		change(&r)
		if got, err := r.Line(); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
	r := good()
	r.Metrics = many(emf.MaxMetrics)
	if _, err := r.Line(); err != nil {
		t.Errorf("as many metrics as may be: got %v, want no error", err)
	}
}
