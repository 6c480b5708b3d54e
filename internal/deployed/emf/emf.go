// Package emf writes metrics as lines of a log, in CloudWatch's embedded metric format: CloudWatch reads
// the line and makes metrics of it. It calls nobody, keeps nothing, and knows no metric of ours.
package emf

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The limits of the format.
const (
	// MaxMetrics is how many metrics a line may hold.
	MaxMetrics = 100
	// MaxValues is how many values of one metric a line may hold.
	MaxValues = 100
	// MaxDimensions is how many dimensions a set may have.
	MaxDimensions = 30
	// maxName and maxValue are how long a name, and the value of a dimension, may be, in bytes.
	maxName, maxValue = 255, 1024
)

// Unit is what a metric counts.
type Unit string

// The units that we use.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
)

// Metric is one value, or, where Values has any, all of these: CloudWatch makes percentiles of them.
type Metric struct {
	Name   string
	Unit   Unit
	Value  float64
	Values []float64
}

// Record is what a line says.
type Record struct {
	Namespace string
	At        time.Time
	// Sets are the sets of dimensions under which each metric is filed; the names are in Values.
	Sets [][]string
	// Values are the values of the dimensions, by their names.
	Values  map[string]string
	Metrics []Metric
}

// metadata is what CloudWatch reads first.
type metadata struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type definition struct {
	Name string
	Unit Unit
}

// Line returns the record as a line of JSON, with its newline. A record that CloudWatch would pass over in
// silence is an error.
func (r Record) Line() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", r.Namespace, err)
	}
	line := map[string]any{}
	for name, value := range r.Values {
		line[name] = value
	}
	d := directive{Namespace: r.Namespace, Dimensions: r.Sets}
	for _, m := range r.Metrics {
		line[m.Name] = m.Value
		if len(m.Values) > 0 {
			line[m.Name] = m.Values
		}
		d.Metrics = append(d.Metrics, definition{m.Name, m.Unit})
	}
	line["_aws"] = metadata{Timestamp: r.At.UnixMilli(), CloudWatchMetrics: []directive{d}}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", r.Namespace, err)
	}
	return append(text, '\n'), nil
}

func (r Record) check() error {
	switch {
	case r.Namespace == "" || len(r.Namespace) > maxName:
		return errors.New("a namespace of 1 to 255 bytes is needed")
	case r.At.IsZero():
		return errors.New("a time is needed")
	case len(r.Metrics) == 0 || len(r.Metrics) > MaxMetrics:
		return fmt.Errorf("%d metrics, want 1 to %d", len(r.Metrics), MaxMetrics)
	}
	taken := []string{"_aws"}
	for name, value := range r.Values {
		if name == "" || len(name) > maxName || value == "" || len(value) > maxValue || slices.Contains(taken, name) {
			return fmt.Errorf("dimension %q with %d bytes: want a name of its own and a value", name, len(value))
		}
		taken = append(taken, name)
	}
	for _, m := range r.Metrics {
		if m.Name == "" || len(m.Name) > maxName || slices.Contains(taken, m.Name) || m.Unit == "" {
			return fmt.Errorf("metric %q: want a name of its own and a unit", m.Name)
		}
		if len(m.Values) > MaxValues {
			return fmt.Errorf("metric %q has %d values, want at most %d", m.Name, len(m.Values), MaxValues)
		}
		for _, value := range append(m.Values[:len(m.Values):len(m.Values)], m.Value) {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return fmt.Errorf("metric %q is %v, which is no number of JSON", m.Name, value)
			}
		}
		taken = append(taken, m.Name)
	}
	for _, set := range r.Sets {
		if len(set) > MaxDimensions {
			return fmt.Errorf("a set of %d dimensions, want at most %d", len(set), MaxDimensions)
		}
		for _, name := range set {
			if _, ok := r.Values[name]; !ok {
				return fmt.Errorf("dimension %q has no value", name)
			}
		}
	}
	return nil
}
