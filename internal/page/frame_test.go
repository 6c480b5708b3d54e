package page

import "testing"

// The templates of every view can be parsed, also of those that nobody has opened yet.
func TestTheTemplatesOfAllViewsAreWhole(t *testing.T) {
	n := 0
	for _, v := range views() {
		if v.template == "" {
			continue
		}
		if parse(v.template).Lookup("main") == nil {
			t.Errorf("%s: there is no main in %s", v.pattern, v.template)
		}
		n++
	}
	if n == 0 {
		t.Error("no view has a template")
	}
}
