package workflowfile

import (
	"errors"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/makegood-dev/makegood/internal/limits"
)

// secretFunction asks for a secret. It is no function of jq: this package never sees the value.
const secretFunction = "secret"

// errSecret: a secret is used where it could not be filled in unseen.
var errSecret = errors.New(`secret stands alone, as ${ secret("name") } with the name written out, in a text of with: its value cannot be used here`)

// secretIn returns the name of the secret that a part of a text is the place of.
func secretIn(p part) (name string, is bool) {
	if !p.expression || !strings.Contains(p.text, secretFunction) {
		return "", false
	}
	q, err := gojq.Parse(p.text)
	if err != nil || q.Term == nil || len(q.FuncDefs) > 0 || len(q.Imports) > 0 || q.Meta != nil {
		return "", false
	}
	t := q.Term
	if t.Type != gojq.TermTypeFunc || t.Func.Name != secretFunction || len(t.Func.Args) != 1 || len(t.SuffixList) > 0 {
		return "", false
	}
	arg := t.Func.Args[0]
	if arg.Term == nil || len(arg.FuncDefs) > 0 {
		return "", false
	}
	s := arg.Term
	if s.Type != gojq.TermTypeString || s.Str.Queries != nil || len(s.SuffixList) > 0 {
		return "", false
	}
	return s.Str.Str, true
}

// secret checks the name of a secret, and notes that the workflow asks for one.
func (c compiler) secret(path, name string) {
	if err := limits.SecretName.Check(name); err != nil {
		c.add(path, "%v", err)
	}
	c.level = max(c.level, levelExpressions)
}

// secrets is how many places for secrets a template has.
func (t *template) secrets() int {
	n := 0
	for _, p := range t.texts {
		if p.secret != "" {
			n++
		}
	}
	for _, f := range t.fields {
		n += f.value.secrets()
	}
	for _, item := range t.items {
		n += item.secrets()
	}
	return n
}

// ReadSecrets returns the names of the steps that read a secret, or whose undo does.
func (c *Compiled) ReadSecrets() (steps []string) {
	for _, s := range c.Workflow.Steps {
		for _, r := range []*request{c.plans[s.Name].forward, c.plans[s.Name].undo} {
			if r != nil && r.with != nil && r.with.secrets() > 0 && !slices.Contains(steps, s.Name) {
				steps = append(steps, s.Name)
			}
		}
	}
	return steps
}

// pointer writes a path as a JSON pointer (RFC 6901).
func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + escape.Replace(key))
	}
	return b.String()
}

// isSecret reports whether a part of a text is the place of a secret.
func isSecret(p part) bool {
	_, is := secretIn(p)
	return is
}
