package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// figure is a line of Go's benchmark format: its values by their units, and the configuration that stands before it.
type figure struct {
	name   string
	values map[string]float64
	config map[string]string
}

var (
	setting = regexp.MustCompile(`^([a-z][^\sA-Z:]*): *(.*)$`)
	// procs is how many processors the line was measured on, which testing appends to the name.
	procs = regexp.MustCompile(`-\d+$`)
)

// parse reads the figures of a text, and passes over all lines that are none.
func parse(text string) ([]figure, error) {
	var found []figure
	config := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if s := setting.FindStringSubmatch(line); s != nil {
			config = with(config, s[1], s[2])
			continue
		}
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		f, err := read(line)
		if err != nil {
			return nil, err
		}
		f.config = config
		found = append(found, f)
	}
	return found, nil
}

// with returns a copy of a configuration with one more setting: earlier figures keep theirs.
func with(config map[string]string, name, value string) map[string]string {
	more := map[string]string{name: value}
	for k, v := range config {
		if k != name {
			more[k] = v
		}
	}
	return more
}

func read(line string) (figure, error) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 {
		return figure{}, fmt.Errorf("%q is no line of a benchmark", line)
	}
	f := figure{name: strings.TrimPrefix(procs.ReplaceAllString(fields[0], ""), "Benchmark"), values: map[string]float64{}}
	for i := 2; i < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return figure{}, fmt.Errorf("%q: %w", line, err)
		}
		f.values[fields[i+1]] = value
	}
	return f, nil
}

// lines returns the lines of a text that are of the benchmark format.
func lines(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Benchmark") || setting.MatchString(strings.TrimSpace(line)) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// short is a figure for a terminal.
func (f figure) short() string {
	for _, unit := range []string{"jobs/s", "open-ms", "first-ms", "all-ms"} {
		if v, has := f.values[unit]; has {
			return fmt.Sprintf("%.4g %s", v, unit)
		}
	}
	return fmt.Sprintf("%.4g ms/op", f.values["ns/op"]/1e6)
}
