package deployed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The limits of the format: the metrics of a line, the values of a metric, the dimensions of a set, the bytes of a name
// and those of the value of a dimension.
const (
	maxEMFMetrics, maxEMFValues, maxEMFDimensions = 100, 100, 30

	maxName, maxValue = 255, 1024
)

// emfUnit is the unit of a metric.
type emfUnit string

// The units that we use.
const (
	emfCount        emfUnit = "Count"
	emfMilliseconds emfUnit = "Milliseconds"
)

// emfMetric is one value, or all of Values, if there are any: CloudWatch makes percentiles from these.
type emfMetric struct {
	Name   string
	Unit   emfUnit
	Value  float64
	Values []float64
}

// emfRecord is a log line in CloudWatch's embedded metric format: CloudWatch makes metrics from it.
type emfRecord struct {
	Namespace string
	At        time.Time
	// Sets are the sets of dimensions under which each metric is filed; the names are in Values.
	Sets [][]string
	// Values are the values of the dimensions, by their names.
	Values  map[string]string
	Metrics []emfMetric
}

// metadata is the part that CloudWatch reads first.
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
	Unit emfUnit
}

// Line returns the record as a line of JSON, with its newline. A record that CloudWatch would pass over in
// silence is an error.
func (r emfRecord) Line() ([]byte, error) {
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

func (r emfRecord) check() error {
	switch {
	case r.Namespace == "" || len(r.Namespace) > maxName:
		return errors.New("a namespace of 1 to 255 bytes is needed")
	case r.At.IsZero():
		return errors.New("a time is needed")
	case len(r.Metrics) == 0 || len(r.Metrics) > maxEMFMetrics:
		return fmt.Errorf("%d metrics, want 1 to %d", len(r.Metrics), maxEMFMetrics)
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
		if len(m.Values) > maxEMFValues {
			return fmt.Errorf("metric %q has %d values, want at most %d", m.Name, len(m.Values), maxEMFValues)
		}
		for _, value := range append(m.Values[:len(m.Values):len(m.Values)], m.Value) {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return fmt.Errorf("metric %q is %v, which is no number of JSON", m.Name, value)
			}
		}
		taken = append(taken, m.Name)
	}
	for _, set := range r.Sets {
		if len(set) > maxEMFDimensions {
			return fmt.Errorf("a set of %d dimensions, want at most %d", len(set), maxEMFDimensions)
		}
		for _, name := range set {
			if _, ok := r.Values[name]; !ok {
				return fmt.Errorf("dimension %q has no value", name)
			}
		}
	}
	return nil
}
