package template

import (
	"slices"
	"strings"
	"testing"
)

// rule is something that must hold of the template. A rule that does not find its mistakes is no rule.
type rule struct {
	name  string
	check func(*template) []string
	wrong []mistake
}

// mistake is a change of the source that breaks a rule, and what must be said of it. All of old is replaced.
type mistake struct{ old, new, says string }

func rules() []rule {
	return slices.Concat(roleRules(), accessRules(), partRules(), functionRules(), alarmRules())
}

func TestTheTemplateKeepsTheRules(t *testing.T) {
	source := readFile(t, templateFile)
	whole := load(t, source)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, found := range r.check(whole) {
				t.Error("template.yaml: " + found)
			}
			if len(r.wrong) == 0 {
				t.Error("no mistake shows that this rule can fail")
			}
			for _, m := range r.wrong {
				r.finds(t, source, m)
			}
		})
	}
}

// finds plants a mistake.
func (r rule) finds(t *testing.T, source string, m mistake) {
	t.Helper()
	if !strings.Contains(source, m.old) {
		t.Errorf("the template has no %q to change", m.old)
		return
	}
	found := r.check(load(t, strings.ReplaceAll(source, m.old, m.new)))
	if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, m.says) }) {
		t.Errorf("%q in place of %q: got %q, want %q to be said", m.new, m.old, found, m.says)
	}
}
