package limits

import (
	"regexp"
	"strings"
	"testing"
)

func TestANameIsRightOrSaysWhatIsWanted(t *testing.T) {
	for _, c := range []struct {
		of         NameOf
		name, want string
	}{
		{WorkflowName, "trip-2", ""},
		{WorkflowName, "trip_2", `"trip_2" cannot be the name of a workflow: want [a-z][a-z0-9-]{0,62}`},
		{StepName, "book_it", ""},
		{StepName, "a\n", `"a\n" cannot be the name of a step: want [a-z][a-z0-9_]{0,62}`},
		{AgentName, "Car-hire_2", ""},
		{AgentName, strings.Repeat("a", MaxNameBytes), ""},
		{AgentName, strings.Repeat("a", MaxNameBytes+1), "the name of an agent has 64 characters, the limit is 63"},
		{ActionName, "", "the name of an action is missing: want [A-Za-z][A-Za-z0-9_-]{0,62}"},
		{FunctionName, "carhire2", ""},
		{FunctionName, "car-hire", `"car-hire" cannot be the name of an agent with a function: want [a-z][a-z0-9]{0,62}`},
		{ProjectName, "my-trips", `"my-trips" cannot be the name of a project: want [a-z][a-z0-9]{0,62}`},
		{ReplyName, "2", `"2" cannot be the name of a reply queue: want [a-z][a-z0-9-]{0,62}`},
	} {
		got := ""
		if err := c.of.Check(c.name); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %q: got %q, want %q", string(c.of), c.name, got, c.want)
		}
	}
}

// What a pattern says and what is checked is the same, whatever the name.
func TestThePatternOfANameIsWhatIsChecked(t *testing.T) {
	for of := range nameClasses {
		pattern := regexp.MustCompile("^" + of.Pattern() + "$")
		for first := range 256 {
			for _, name := range []string{string([]byte{byte(first)}), string([]byte{'a', byte(first)})} {
				if got, want := of.Check(name) == nil, pattern.MatchString(name); got != want {
					t.Errorf("%s %q: allowed %t, its pattern says %t", string(of), name, got, want)
				}
			}
		}
	}
}
