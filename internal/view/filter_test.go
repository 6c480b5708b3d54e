package view_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
)

// A filter is written down four times: as the client has it, as the parameters of the API, as the table of flags, and as the
// stores take it. A field that one of them forgot would let a verb find more jobs than were meant.
func TestAFilterLosesNothingOnItsWay(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	samples := map[reflect.Type]any{
		reflect.TypeFor[makegood.ProcessState](): makegood.JobError, reflect.TypeFor[string](): "some", reflect.TypeFor[bool](): true,
		reflect.TypeFor[map[string]string](): map[string]string{"a": "b"}, reflect.TypeFor[time.Time](): now.Add(-time.Hour),
		reflect.TypeFor[time.Duration](): 90 * time.Second,
	}
	parameters := map[string]bool{}
	for _, p := range filter.Parameters() {
		parameters[p.Name] = true
	}
	fields := reflect.VisibleFields(reflect.TypeFor[api.Filter]())
	if len(fields) != len(parameters) || reflect.TypeFor[store.Filter]().NumField() != len(fields)+2 {
		t.Errorf("the client has %d fields, the table %d parameters, the stores %d fields, want two more than the client: Now, and Waiting, which is a state there",
			len(fields), len(parameters), reflect.TypeFor[store.Filter]().NumField())
	}
	for _, field := range fields {
		var f api.Filter
		reflect.ValueOf(&f).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(samples[field.Type]))
		values := protocol.FilterValues(f)
		if len(values) != 1 {
			t.Errorf("%s is written as %v, want one parameter", field.Name, values)
		}
		for name := range values {
			if !parameters[name] {
				t.Errorf("%s is written as %s, which is no parameter", field.Name, name)
			}
			delete(parameters, name)
		}
		if back, err := protocol.ReadFilter(values); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("%s is written as %v, and read as %+v, %v", field.Name, values, back, err)
		}
		got := reflect.ValueOf(view.Filter(f, now)).FieldByName(field.Name)
		if !got.IsValid() || !reflect.DeepEqual(got.Interface(), samples[field.Type]) {
			t.Errorf("the stores get %v as %s", got, field.Name)
		}
	}
	if len(parameters) > 0 {
		t.Errorf("no field is written as %v", parameters)
	}
}
