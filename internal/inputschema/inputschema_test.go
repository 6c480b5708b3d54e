package inputschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// compiled returns a schema that is right.
func compiled(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(text))
	if err != nil {
		t.Fatalf("Compile(%.200s): %v", text, err)
	}
	return s
}

func lines[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, "\n")
}

func TestAMisfitIsToldWithItsPlaceAndTheLimit(t *testing.T) {
	const order = `{
		"type": "object", "required": ["customer", "total"], "additionalProperties": false,
		"properties": {
			"customer": {"type": "string", "minLength": 1, "maxLength": 5},
			"total": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 100, "multipleOf": 0.5},
			"mail": {"type": "string", "format": "email"},
			"day": {"format": "date"},
			"kind": {"enum": ["new", "old"]},
			"version": {"const": 2},
			"sku": {"pattern": "^[a-z]+$"},
			"tags": {"type": "array", "maxItems": 2, "minItems": 1, "uniqueItems": true, "items": {"type": "string"}},
			"a/b": {"type": "integer"},
			"pay": {"oneOf": [{"type": "object", "required": ["card"]}, {"type": "object", "required": ["iban"]}]},
			"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}
		},
		"$defs": {"line": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}}
	}`
	s := compiled(t, order)
	for _, c := range []struct{ with, want string }{
		{`"customer": "acme", "total": 2.5`, ``},
		{``, "/customer is missing\n/total is missing"},
		{`"customer": "", "total": 0`, "/customer must not be empty\n/total must be at least 0.5"},
		{`"customer": "toolong", "total": 100`, "/customer has 7 characters, and must have at most 5\n/total must be less than 100"},
		{`"customer": "a", "total": 0.7`, "/total must be a multiple of 0.5"},
		{`"customer": "a", "total": "1"`, "/total must be number, and is string"},
		{`"customer": "a", "total": 1, "mail": "nobody"`, "/mail must be an e-mail address"},
		{`"customer": "a", "total": 1, "day": "22.11.2026"`, "/day must be a date such as 2026-11-22"},
		{`"customer": "a", "total": 1, "kind": "odd"`, `/kind must be one of "new", "old"`},
		{`"customer": "a", "total": 1, "version": 3`, `/version must be 2`},
		{`"customer": "a", "total": 1, "sku": "A1"`, `/sku must match ^[a-z]+$`},
		{`"customer": "a", "total": 1, "tags": []`, `/tags has 0 items, and must have at least 1`},
		{`"customer": "a", "total": 1, "tags": ["x", "x"]`, `/tags has the same item twice, at 0 and 1`},
		{`"customer": "a", "total": 1, "tags": ["x", 2]`, `/tags/1 must be string, and is number`},
		{`"customer": "a", "total": 1, "a/b": 1.5`, `/a~1b must be integer, and is number`},
		{`"customer": "a", "total": 1, "lines": [{"n": 1}, {"n": 0}, {}]`, "/lines/1/n must be at least 1\n/lines/2/n is missing"},
		{`"customer": "a", "total": 1, "colour": "red"`, `/colour must not be there: the schema does not know it`},
		{`"customer": "a", "total": 1, "pay": {}`, `/pay fits none of the alternatives: (1) /pay/card is missing; (2) /pay/iban is missing`},
		{`"customer": "a", "total": 1, "pay": {"card": 1, "iban": 2}`, `/pay fits the alternatives 1 and 2, and must fit one alone`},
		{`"customer": "a", "total": 1e999999999`, "/total has more than 400 digits, or a power of ten beyond 400, and cannot be checked"},
	} {
		if got := lines(s.Check([]byte("{" + c.with + "}"))); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.with, got, c.want)
		}
	}
	if got := lines(s.Check([]byte("null"))); got != "it must be object, and is null" {
		t.Errorf("null: %s", got)
	}
}

func TestMisfitsHaveALimit(t *testing.T) {
	s := compiled(t, `{"items": {"type": "string"}}`)
	got := s.Check([]byte("[" + strings.Repeat("1,", 5000) + "1]"))
	if len(got) != limits.MaxMisfits {
		t.Errorf("%d misfits, want %d", len(got), limits.MaxMisfits)
	}
}

func TestASchemaThatIsWrongIsRefusedWithItsPlace(t *testing.T) {
	deep := strings.Repeat(`{"not":`, limits.MaxInputSchemaDepth+1) + `{}` + strings.Repeat(`}`, limits.MaxInputSchemaDepth+1)
	for _, c := range []struct{ schema, want string }{
		{`[]`, "want a mapping: a JSON Schema"},
		{`{"type": "strin"}`, `type: must be one of "array", "boolean", "integer", "null", "number", "object", "string"`},
		{`{"properties": {"a": {"minimum": "1"}}}`, "properties.a.minimum: must be number, and is string"},
		{`{"required": "a"}`, "required: must be array, and is string"},
		{`{"pattern": "("}`, "pattern: error parsing regexp: missing closing ): `(` (patterns are those of Go's package regexp)"},
		{`{"pattern": "(?=a)"}`, "pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?=` (patterns are those of Go's package regexp)"},
		{`{"pattern": "` + strings.Repeat("x{1,1000}", 11) + `"}`, "pattern: a regular expression of more than 10000 states (patterns are those of Go's package regexp)"},
		{`{"pattern": "` + strings.Repeat("x", 16<<10+1) + `"}`, "pattern: a regular expression of 16385 bytes, the limit is 16384 (patterns are those of Go's package regexp)"},
		{`{"patternProperties": {"(": {}}}`, "patternProperties.(: error parsing regexp: missing closing ): `(` (patterns are those of Go's package regexp)"},
		{`{"$ref": "https://example.com/order.json"}`, `$ref: "https://example.com/order.json" leads out of the schema, and no schema is fetched: copy it to $defs, and refer to it as #/$defs/NAME`},
		{`{"$ref": "file:///etc/passwd"}`, `$ref: "file:///etc/passwd" leads out of the schema, and no schema is fetched: copy it to $defs, and refer to it as #/$defs/NAME`},
		{`{"items": {"$ref": "#/$defs/none"}}`, `items.$ref: there is no schema at "#/$defs/none"`},
		{`{"$ref": "#"}`, "it refers to itself and goes no deeper, so it would never end"},
		{`{"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}`, "$defs.a: it refers to itself and goes no deeper, so it would never end"},
		{`{"$schema": "http://json-schema.org/draft-07/schema#"}`, "$schema: want " + Draft + ", or leave it out"},
		{`{"properties": {"a": {"$id": "b"}}}`, "properties.a.$id: only the schema as a whole may have an $id"},
		{`{"maximum": 1e5000}`, "maximum: has more than 400 digits, or a power of ten beyond 400, and cannot be checked"},
		{deep, strings.Repeat("not.", limits.MaxInputSchemaDepth-1) + "not: nested deeper than 64"},
		{`{"title": "` + strings.Repeat("x", limits.MaxInputSchemaBytes) + `"}`, "65549 bytes as JSON, the limit is 65536"},
	} {
		_, err := Compile(json.RawMessage(c.schema))
		if err == nil || err.Error() != c.want {
			t.Errorf("%.80s: %v\nwant %s", c.schema, err, c.want)
		}
	}
}

func TestWhatASchemaDoesNotCheckIsSaid(t *testing.T) {
	s := compiled(t, `{"requird": ["a"], "properties": {"a": {"format": "colour", "x-unit": "m"}}}`)
	want := []Problem{
		{"properties.a.format", `the format "colour" is not known: it is ignored`},
		{"requird", `"requird" is no keyword of JSON Schema 2020-12: it is ignored`},
	}
	if fmt.Sprint(s.Doubts) != fmt.Sprint(want) {
		t.Errorf("doubts %v, want %v", s.Doubts, want)
	}
}

// Every format that is taken for known refuses some text; one that did not would be checked by nobody.
func TestEveryKnownFormatRefusesSomething(t *testing.T) {
	for _, name := range formats {
		s := compiled(t, fmt.Sprintf(`{"format": %q}`, name))
		if got := s.Check([]byte(`"(%:{ ~3 "`)); len(got) != 1 {
			t.Errorf("format %s: %v", name, got)
		}
	}
}

// A schema that branches into itself at each level would look at a deep input 2^depth times.
func TestWhatAnInputTakesToCheckIsBounded(t *testing.T) {
	s := compiled(t, `{"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["b"]}, {"properties": {"a": {"$ref": "#"}}, "required": ["c"]}]}`)
	const depth = 60
	input := strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth)
	got := s.Check([]byte(input))
	if len(got) != 1 || !strings.Contains(got[0].Why, "takes more than 500000 looks") {
		t.Errorf("misfits %v", got)
	}
	if got := s.Check([]byte(`{"b": 1}`)); len(got) != 0 {
		t.Errorf("afterwards: %v", got)
	}
}

// What speaks against alternatives within alternatives is found once at each level: twice would be 2^depth, for whoever submits
// an input of a hundred bytes, and nobody else could submit meanwhile.
func TestAlternativesWithinAlternativesAreToldAtOnce(t *testing.T) {
	s := compiled(t, `{"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}]}`)
	const depth = 400
	got := s.Check([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)))
	if len(got) != 1 || !strings.HasPrefix(got[0].At, "/0/0/0/") || got[0].Why != "has 0 items, and must have at least 1" {
		t.Errorf("misfits %v", got)
	}
}

// A schema that leads to others by many ways, and never back, is compiled as soon as any.
func TestASchemaOfManyWaysIsCompiled(t *testing.T) {
	const steps = 60
	var defs strings.Builder
	for i := range steps {
		fmt.Fprintf(&defs, `"a%d": {"anyOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&defs, `"a%d": {"type": "string"}`, steps)
	s := compiled(t, `{"$ref": "#/$defs/a0", "$defs": {`+defs.String()+`}}`)
	if got := s.Check([]byte(`"x"`)); len(got) != 0 {
		t.Errorf("misfits %v", got)
	}
}

// Of many misfits the first by place are told, whichever way they were found.
func TestTheFirstOfManyMisfitsAreTold(t *testing.T) {
	s := compiled(t, `{"additionalProperties": {"items": {"type": "string"}}}`)
	got := s.Check([]byte(`{"b": [` + strings.Repeat("1,", 2*keptMisfits) + `1], "a": [1], "c": [1]}`))
	if len(got) != limits.MaxMisfits || got[0].At != "/a/0" || got[1].At != "/b/0" || got[2].At != "/b/1" {
		t.Errorf("misfits %v", got)
	}
}

// What a pattern takes grows with its states: one of a thousand took minutes for a text of 256 KB, and nobody else could submit meanwhile.
func TestWhatAPatternTakesToMatchIsCounted(t *testing.T) {
	long := strings.Repeat("x", makegood.MaxPayloadBytes-40)
	text := func(s string) string { return `{"a": "` + s + `"}` }
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `, "%0100d": 1`, i)
		}
		return `{"a": 1` + b.String() + `}`
	}
	const wide = `(x{0,500}y|x{0,500}z)`
	for name, c := range map[string]struct {
		schema, input string
		fits          bool
	}{
		"a simple pattern, a long text":       {`{"properties": {"a": {"pattern": "^[a-z]+$"}}}`, text(long), true},
		"a mail address, a long text":         {`{"properties": {"a": {"pattern": "^[^@ ]+@?[^@ ]+$"}}}`, text(long), true},
		"a large pattern, a short text":       {`{"properties": {"a": {"pattern": "^.{1,1000}$"}}}`, text(strings.Repeat("x", 1000)), true},
		"a large pattern, a long text":        {`{"properties": {"a": {"pattern": "` + wide + `|"}}}`, text(long), false},
		"a large pattern, many names":         {`{"patternProperties": {"` + wide + `": {}}}`, names(2000), false},
		"a large pattern, a few names":        {`{"patternProperties": {"` + wide + `": {}}}`, names(100), true},
		"a large pattern for names":           {`{"propertyNames": {"pattern": "` + wide + `|"}}`, names(2000), false},
		"a text that is to be a pattern":      {`{"properties": {"a": {"format": "regex"}}}`, text(`^[a-z]{1,100}\\pL$`), true},
		"a long text that is to be a pattern": {`{"properties": {"a": {"format": "regex"}}}`, text(long), false},
		"many texts that are to be patterns":  {`{"items": {"format": "regex"}}`, "[" + strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 1000) + `1]`, false},
		"a few texts that are to be patterns": {`{"items": {"format": "regex"}}`, "[" + strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 100) + `1]`, true},
	} {
		got := compiled(t, c.schema).Check([]byte(c.input))
		if c.fits != (len(got) == 0) || !c.fits && !strings.Contains(got[0].Why, "takes more than 500000 looks") {
			t.Errorf("%s: misfits %v, want it to fit: %v", name, got, c.fits)
		}
	}
	s := compiled(t, `{"properties": {"a": {"format": "regex"}}}`)
	if got := lines(s.Check([]byte(text(strings.Repeat(`\\pL`, 100))))); got != "/a must be of the format regex" {
		t.Errorf("a text that would be a larger pattern than one may be: %s", got)
	}
}

// Nobody waits for who looks at another input.
func TestInputsAreCheckedSideBySide(t *testing.T) {
	s := compiled(t, `{"pattern": "^[a-z]+$", "maxLength": 5}`)
	var checking sync.WaitGroup
	for i := range 16 {
		checking.Go(func() {
			want := map[bool]string{true: "", false: "it has 6 characters, and must have at most 5"}[i%2 == 0]
			for range 100 {
				if got := lines(s.Check(fmt.Appendf(nil, "%q", strings.Repeat("x", 5+i%2)))); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	checking.Wait()
	first, err := s.begin()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := s.begin(); err != nil || second == first {
		t.Errorf("two at once got %p and %p, %v, want one each", first, second, err)
	}
}

// What an input may have at most takes a fraction of what one may take.
func TestALargestInputOfOneKindIsChecked(t *testing.T) {
	s := compiled(t, `{"type": "array", "uniqueItems": false, "items": {"type": "integer", "minimum": 0}}`)
	input := "[" + strings.Repeat("1,", makegood.MaxPayloadBytes/2-2) + "1]"
	if got := s.Check([]byte(input)); len(got) != 0 {
		t.Errorf("misfits %v", got)
	}
}

func TestAMemberThatCannotBeIsKnownBefore(t *testing.T) {
	root := compiled(t, `{
		"$ref": "#/$defs/order", "properties": {"free": {}},
		"$defs": {"order": {
			"type": "object", "additionalProperties": false, "patternProperties": {"^x-": {}},
			"properties": {"total": {"type": "number"}, "to": {"type": ["object", "null"], "properties": {"city": {}}}, "free": {}, "never": false}
		}}}`).Root
	for _, c := range []struct{ path, why string }{
		{"total", ""},
		{"x-any", ""},
		{"free any thing", ""},
		{"to city", ""},
		{"to street", ""},
		{"totl", `the input's schema allows no member "totl" here`},
		{"never", `the input's schema allows no member "never" here`},
		{"total x", "it is number by the input's schema, which has no members"},
	} {
		n, why := root, ""
		for name := range strings.FieldsSeq(c.path) {
			n, why = n.Member(name)
		}
		if why != c.why {
			t.Errorf("%s: %q, want %q", c.path, why, c.why)
		}
	}
	if got := root.Names(); fmt.Sprint(got) != "[free never to total]" {
		t.Errorf("names %v", got)
	}
}

func FuzzASchemaAndAnInput(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"format":"date"}}}`, `{"a":"x"}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`, `[[1]]`)
	f.Add(`{"enum":[1e3],"uniqueItems":true,"multipleOf":0.1}`, `[1,1.0]`)
	f.Add(`{"if":{"const":1},"then":false,"unevaluatedProperties":false,"allOf":[{"format":"uuid"}],"format":"uri"}`, `{"b":1}`)
	f.Fuzz(func(t *testing.T, schema, input string) {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, m := range s.Check([]byte(input)) {
			if m.Why == "" || len(m.Why) > maxWhy+3 || len(m.At) > maxAt+3 {
				t.Errorf("misfit %q", m)
			}
		}
	})
}

func BenchmarkAnOrderIsChecked(b *testing.B) {
	s, err := Compile(json.RawMessage(`{"type": "object", "required": ["customer", "total"], "properties": {"customer": {"type": "string", "minLength": 1}, "total": {"type": "number", "minimum": 0}}}`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got := s.Check([]byte(`{"customer": "acme", "total": 12.5, "items": [{"sku": "a", "n": 1}]}`)); len(got) != 0 {
			b.Fatal(got)
		}
	}
}

func BenchmarkASchemaIsCompiled(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(json.RawMessage(`{"type": "object", "required": ["customer", "total"], "properties": {"customer": {"type": "string", "minLength": 1}, "total": {"type": "number", "minimum": 0}}}`)); err != nil {
			b.Fatal(err)
		}
	}
}
