package inputschema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxNamed is how many values or alternatives a message names.
	maxNamed = 10
	// maxWhy and maxAt are the longest reason of a misfit, and the longest place, in bytes.
	maxWhy = 300
	maxAt  = 256
	// keptMisfits is from how many on those are dropped that will not be told: an input may have one at each of its values.
	keptMisfits = 16 * limits.MaxMisfits
)

// misfitsOf flattens what the compiler's check found: one misfit for each thing to mend.
func misfitsOf(e *jsonschema.ValidationError) []makegood.Misfit {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(at, k.Missing, "is missing")
	case *kind.DependentRequired:
		return each(at, k.Missing, fmt.Sprintf("is missing, and must be there where %.60q is", k.Prop))
	case *kind.Dependency:
		return each(at, k.Missing, fmt.Sprintf("is missing, and must be there where %.60q is", k.Prop))
	case *kind.AdditionalProperties:
		return each(at, k.Properties, "must not be there: the schema does not know it")
	case *kind.AnyOf:
		return alternatives(at, e.Causes)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return []makegood.Misfit{misfit(at, fmt.Sprintf("fits the alternatives %d and %d, and must fit one alone", k.Subschemas[0]+1, k.Subschemas[1]+1))}
		}
		return alternatives(at, e.Causes)
	case *kind.PropertyNames:
		return []makegood.Misfit{misfit(append(slices.Clone(at), k.Property), "must not be named so"+because(e.Causes))}
	}
	if why := whyOf(e.ErrorKind); why != "" {
		return []makegood.Misfit{misfit(at, why)}
	}
	var all []makegood.Misfit
	for _, cause := range e.Causes {
		if all = append(all, misfitsOf(cause)...); len(all) > keptMisfits {
			all = sorted(all)
		}
	}
	if len(all) == 0 {
		all = append(all, misfit(at, "does not fit the schema"))
	}
	return all
}

// whyOf names the fault, and the limit; empty: its causes do.
func whyOf(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, and is %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Const:
		return "must be " + list([]any{k.Want})
	case *kind.Format:
		return formatText(k.Want)
	case *kind.FalseSchema:
		return "must not be there"
	case *kind.Not:
		return "must not be as it is: the schema's not describes it"
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself without end"
	case *kind.InvalidJsonValue:
		return "cannot be checked"
	}
	return cmp.Or(whySize(of), whyNumber(of))
}

// whySize names the fault of a size or count.
func whySize(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("has %d members, and must have at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d members, and must have at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, and must have at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, and must have at most %d", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "has no item as its contains describes one"
	case *kind.MinContains:
		return fmt.Sprintf("has %d items as its contains describes them, and must have at least %d", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("has %d items as its contains describes them, and must have at most %d", len(k.Got), k.Want)
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("has %d characters, and must have at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, and must have at most %d", k.Got, k.Want)
	case *kind.Pattern:
		return "must match " + k.Want
	}
	return ""
}

// whyNumber names the fault of a number.
func whyNumber(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	return ""
}

// number writes a number of a schema.
func number(r *big.Rat) string {
	if r.IsInt() {
		return r.RatString()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// formatText says what a text of a format looks like.
func formatText(name string) string {
	such := map[string]string{
		"date": "a date such as 2026-11-22", "date-time": "a date and time such as 2026-11-22T18:00:00Z",
		"time": "a time such as 18:00:00Z", "email": "an e-mail address", "uri": "a URI such as https://example.com/a", "uuid": "a UUID",
	}[name]
	return "must be " + cmp.Or(such, "of the format "+name)
}

// each is the same misfit of several members of an object, of no more than are told.
func each(at, names []string, why string) (all []makegood.Misfit) {
	names = slices.Sorted(slices.Values(names))
	for _, name := range names[:min(len(names), limits.MaxMisfits)] {
		all = append(all, misfit(append(slices.Clone(at), name), why))
	}
	return all
}

// alternatives returns the first misfit of each alternative of a place. It asks each once: nested alternatives, as
// deep as an input is, would else be asked twice as often at each level.
func alternatives(at []string, causes []*jsonschema.ValidationError) []makegood.Misfit {
	const none = "fits none of the alternatives: "
	likely := slices.DeleteFunc(slices.Clone(causes), func(c *jsonschema.ValidationError) bool { return otherType(c, causes) })
	if len(likely) == 1 {
		// All others are for values of another kind.
		first := sorted(misfitsOf(likely[0]))
		if len(first) == 1 {
			return first
		}
		return []makegood.Misfit{misfit(at, none+"(1) "+first[0].String())}
	}
	if len(likely) == 0 {
		likely = causes
	}
	var reasons []string
	for i, cause := range likely[:min(len(likely), maxNamed)] {
		first := sorted(misfitsOf(cause))[0]
		reasons = append(reasons, fmt.Sprintf("(%d) %s", i+1, first))
	}
	return []makegood.Misfit{misfit(at, none+strings.Join(reasons, "; "))}
}

// otherType reports whether an alternative is for a value of another type, which says little.
func otherType(c *jsonschema.ValidationError, of []*jsonschema.ValidationError) bool {
	for len(c.Causes) == 1 && len(c.InstanceLocation) == len(of[0].InstanceLocation) {
		c = c.Causes[0]
	}
	_, is := c.ErrorKind.(*kind.Type)
	return is && len(c.InstanceLocation) == len(of[0].InstanceLocation)
}

// because says why a name is not allowed.
func because(causes []*jsonschema.ValidationError) string {
	for _, cause := range causes {
		return ": " + sorted(misfitsOf(cause))[0].Why
	}
	return ""
}

// list writes values of a schema.
func list(values []any) string {
	var texts []string
	for i, v := range values {
		if i == maxNamed {
			texts = append(texts, fmt.Sprintf("%d more", len(values)-maxNamed))
			break
		}
		texts = append(texts, valueText(v))
	}
	return strings.Join(texts, ", ")
}

// valueText writes a value of a schema.
func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return limits.Shorten(string(text), 60)
}

func misfit(at []string, why string) makegood.Misfit {
	return makegood.Misfit{At: limits.Shorten(pointer(at), maxAt), Why: limits.Shorten(why, maxWhy)}
}

// sorted are misfits by place, each once, and no more than are told.
func sorted(all []makegood.Misfit) []makegood.Misfit {
	slices.SortFunc(all, func(a, b makegood.Misfit) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Why, b.Why)) })
	all = slices.Compact(all)
	return all[:min(len(all), limits.MaxMisfits)]
}

var escapes, escaped = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// pointer writes a place as a JSON pointer (RFC 6901), shortened: an input may be deep, and wrong at each place.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(t))
		if b.Len() > maxAt {
			break
		}
	}
	return b.String()
}

func unescape(token string) string { return escaped.Replace(token) }

// problemsOf returns the compiler's objections to a schema; nil: none.
func problemsOf(err error) Problems {
	if err == nil {
		return nil
	}
	invalid := new(jsonschema.SchemaValidationError)
	found := new(jsonschema.ValidationError)
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &found) {
		return Problems{{Message: strings.ReplaceAll(err.Error(), resource, "the schema")}}
	}
	var all Problems
	for _, m := range sorted(misfitsOf(found)) {
		all = append(all, Problem{At: placeOf(m.At), Message: m.Why})
	}
	return all
}

// placeOf turns a JSON pointer into a place as a workflow file has it.
func placeOf(pointer string) (at string) {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(token); err == nil && at != "" {
			at += "[" + token + "]"
			continue
		}
		at = join(at, unescape(token))
	}
	return at
}
