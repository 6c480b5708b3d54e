package limits

import "fmt"

// NameOf is a kind of thing that has a name. The rules of all names are here, and nowhere else.
type NameOf string

// The kinds of things with names, in the words of messages.
const (
	WorkflowName NameOf = "a workflow"
	StepName     NameOf = "a step"
	AgentName    NameOf = "an agent"
	ActionName   NameOf = "an action"
	// FunctionName is the name of an agent which the template gives a queue and a function: part of names with stricter
	// rules. It is always an AgentName, too.
	FunctionName NameOf = "an agent with a function"
	// ProjectName is the name of a Go package, of a command and of stacks at once.
	ProjectName NameOf = "a project"
	// SecretName is the name of a secret, in an expression.
	SecretName NameOf = "a secret"
	// ErrorKind is a kind of error.
	ErrorKind NameOf = "a kind of error"
	// ReplyName is the name of a receiver that is registered for replies.
	ReplyName NameOf = "a reply queue"
	// ScheduleName is the name of a schedule; it begins the ids of its jobs.
	ScheduleName NameOf = "a schedule"
	// TenantName is the name of a job's tenant; LabelName the name of a label. Both serve to find jobs.
	TenantName NameOf = "a tenant"
	LabelName  NameOf = "a label"
)

// nameClasses are the characters that a name may begin with, and those that may follow.
var nameClasses = map[NameOf][2]string{
	WorkflowName: {"[a-z]", "[a-z0-9-]"},
	StepName:     {"[a-z]", "[a-z0-9_]"},
	AgentName:    {"[A-Za-z]", "[A-Za-z0-9_-]"},
	ActionName:   {"[A-Za-z]", "[A-Za-z0-9_-]"},
	FunctionName: {"[a-z]", "[a-z0-9]"},
	ProjectName:  {"[a-z]", "[a-z0-9]"},
	ErrorKind:    {"[a-z]", "[a-z0-9_]"},
	SecretName:   {"[a-z]", "[a-z0-9_]"},
	ReplyName:    {"[a-z]", "[a-z0-9-]"},
	ScheduleName: {"[a-z]", "[a-z0-9-]"},
	TenantName:   {"[A-Za-z0-9]", "[A-Za-z0-9._:-]"},
	LabelName:    {"[a-z]", "[a-z0-9_.-]"},
}

// Pattern returns the regular expression of such a name, without ^ and $. It panics for an unknown kind.
func (of NameOf) Pattern() string {
	classes, known := nameClasses[of]
	if !known {
		panic(fmt.Sprintf("makegood: %q has no rule for its name", string(of)))
	}
	return fmt.Sprintf("%s%s{0,%d}", classes[0], classes[1], MaxNameBytes-1)
}

// Check describes the error in a name, with the rule; nil: the name is valid.
func (of NameOf) Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name of %s is missing: want %s", string(of), of.Pattern())
	case len(name) > MaxNameBytes:
		return fmt.Errorf("the name of %s has %d characters, the limit is %d", string(of), len(name), MaxNameBytes)
	case !of.allows(name):
		return fmt.Errorf("%q cannot be the name of %s: want %s", name, string(of), of.Pattern())
	}
	return nil
}

// allows reports whether the characters of a name are those of its rule.
func (of NameOf) allows(name string) bool {
	classes := nameClasses[of]
	for i := range len(name) {
		if !inClass(classes[min(i, 1)], name[i]) {
			return false
		}
	}
	return true
}

// inClass reports whether a character is of a class, such as [a-z0-9-]. This package must not import regexp.
func inClass(class string, c byte) bool {
	for inner := class[1 : len(class)-1]; inner != ""; {
		if len(inner) > 2 && inner[1] == '-' {
			if inner[0] <= c && c <= inner[2] {
				return true
			}
			inner = inner[3:]
			continue
		}
		if inner[0] == c {
			return true
		}
		inner = inner[1:]
	}
	return false
}

// PayloadMark is the one member of the object that a Payload is in JSON.
const PayloadMark = "$payload"
