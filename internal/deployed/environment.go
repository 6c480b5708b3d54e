package deployed

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

// environment reads configuration, and collects all mistakes, so that one deployment reports them together.
type environment struct {
	getenv func(string) string
	wrong  []string
}

func (e *environment) refuse(name, format string, args ...any) {
	e.wrong = append(e.wrong, name+" "+fmt.Sprintf(format, args...))
}

// required returns a value that must be set; what describes it.
func (e *environment) required(name, what string) string {
	value := e.getenv(name)
	if value == "" {
		e.refuse(name, "is missing (%s)", what)
	}
	return value
}

// oneOf returns a value that must be there and be one of these.
func (e *environment) oneOf(name, what string, values []string) string {
	value := e.required(name, what)
	if value != "" && !slices.Contains(values, value) {
		e.refuse(name, "is %q, want one of %s", value, strings.Join(values, ", "))
	}
	return value
}

// number returns a whole number, and zero where there is none.
func (e *environment) number(name string, least, most int) int {
	text := e.getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		e.refuse(name, "is %q, want a whole number of %d to %d", text, least, most)
		return 0
	}
	return n
}

// list returns the values between commas.
func (e *environment) list(name string) []string {
	var values []string
	for value := range strings.SplitSeq(e.getenv(name), ",") {
		if value = strings.TrimSpace(value); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// pairs returns "a=1,b=2" as a map, and nil where it is empty.
func (e *environment) pairs(name string) map[string]string {
	var all map[string]string
	for _, pair := range e.list(name) {
		key, value, ok := strings.Cut(pair, "=")
		if _, twice := all[key]; !ok || key == "" || value == "" || twice {
			e.refuse(name, "has %q, want NAME=VALUE, each name once", pair)
			continue
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[key] = value
	}
	return all
}

func (e *environment) level(name string) slog.Level {
	var level slog.Level
	if text := e.getenv(name); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			e.refuse(name, "is %q, want DEBUG, INFO, WARN or ERROR", text)
		}
	}
	return level
}

// err returns everything that is wrong, in one line: in a log of Lambda each line is a message.
func (e *environment) err() error {
	if len(e.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("environment: %s", strings.Join(e.wrong, "; "))
}
