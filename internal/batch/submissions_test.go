package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// What is wrong with a line is said with its number, and what is wanted.
func TestALineThatIsWrongIsNamedByItsNumber(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"workflow":"order"}`, "input is missing; null is an input"},
		{`{"input":1}`, "workflow: the name of a workflow is missing: want [a-z][a-z0-9-]{0,62}"},
		{`{"workflow":"Order","input":1}`, `workflow: "Order" cannot be the name of a workflow`},
		{`{"workflow":"order","input":1,"id":"a b"}`, `id "a b" cannot be a job's id`},
		{`{"workflow":"order","input":1,"id":7}`, "id: want a text"},
		{`{"workflow":"order","input":1,"startAt":"noon"}`, "startAt: want a time as in RFC 3339"},
		{`{"workflow":"order","input":1,"ID":"a"}`, `there is no field "ID"; there are id, workflow, input`},
		{`{"workflow":"order","input":1,"input":2}`, "not strict JSON: "},
		{`{"workflow":"order","input":1,"tenant":"A B"}`, `tenant: "A B" cannot be the name of a tenant`},
		{`{"workflow":"order","input":1,"priority":"high"}`, `priority "high": want urgent, normal or idle`},
		{`{"workflow":"order","input":1,"labels":{"shop":7}}`, "labels: want an object of texts"},
		{`{"workflow":"order","input":1,"labels":{"shop":""}}`, "labels: the label shop has no value"},
		{`[1]`, "want an object with workflow, input and, better, id"},
		{`null`, "want an object"},
		{`{"workflow":"order","input":`, "not strict JSON: "},
		{`{"workflow":"order","input":"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"}`, "input has 262146 bytes, the limit is 262144"},
		{`{"workflow":"order","input":"` + strings.Repeat("x", makegood.MaxPayloadBytes+maxAround) + `"}`, "more than 278528 bytes, which is the limit of a submission"},
	} {
		_, err := CheckSubmissions("jobs.jsonl", strings.NewReader("\n"+c.line+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "jobs.jsonl:2: "+c.want) {
			t.Errorf("%.60s: got %.200v, want jobs.jsonl:2: %s", c.line, err, c.want)
		}
	}
}

// All that is wrong is told at once, up to a limit.
func TestAFileIsCheckedAsAWhole(t *testing.T) {
	file := `{"workflow":"order","id":"a","input":1}
{"workflow":"order","id":"a","input":1}
{"id":"a","input":1,"workflow":"order"}
{"workflow":"order","id":"a","input":2}
` + strings.Repeat("{}\n", 30)
	_, err := CheckSubmissions("jobs.jsonl", strings.NewReader(file))
	var all *Errors
	if !errors.As(err, &all) || len(all.First) != MaxErrors || all.More != 11 ||
		all.First[0].Error() != `jobs.jsonl:4: the id "a" is that of line 1 already, with other content` {
		t.Errorf("got %v, want the fourth line first, and 31 in all", err)
	}
	torn := errors.New("torn")
	if _, err := CheckSubmissions("jobs.jsonl", iotest.ErrReader(torn)); !errors.Is(err, torn) {
		t.Errorf("got %v, want %v", err, torn)
	}
}

// A line without an id gets one of the file's name, its number and its content: the same again is the same job.
func TestALineWithoutAnIDGetsTheSameOneAgain(t *testing.T) {
	const file = `{"workflow":"order","id":"a","input":null,"replyTo":"shop","startAt":"2027-01-01T00:00:00Z"}

{"workflow":"refund","input":{"b": 1}}
`
	checked, err := CheckSubmissions("in", strings.NewReader(file))
	if err != nil || checked.Lines != 2 || checked.Workflows["order"] != 1 || checked.Workflows["refund"] != 3 {
		t.Fatalf("got %+v, %v", checked, err)
	}
	var got []string
	for _, name := range []string{"/data/Orders of today.jsonl", "/elsewhere/Orders of today.jsonl", "other.jsonl", "-"} {
		for line, err := range EachSubmission(name, strings.NewReader(file)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %s %s %s", line.Number, line.ID, line.Workflow, line.Input))
		}
	}
	want := []string{"1 a order null", "3 Orders-of-today-3-", "1 a order null", "3 Orders-of-today-3-", "1 a order null", "3 other-3-", "1 a order null", "3 --3-"}
	for i, line := range got {
		if !strings.HasPrefix(line, want[i]) || i%2 == 1 && !strings.HasSuffix(line, ` refund {"b": 1}`) {
			t.Errorf("got %q, want %q", line, want[i])
		}
	}
	if len(got) != len(want) || got[1] != got[3] || got[1] == got[5] {
		t.Errorf("got %q", got)
	}
}

// Whoever changes the file meanwhile is told so, and what stands before the line is not lost.
func TestALineThatWentWrongMeanwhileEndsIt(t *testing.T) {
	var got []string
	for line, err := range EachSubmission("in", strings.NewReader("{\"workflow\":\"order\",\"id\":\"a\",\"input\":1}\n{\n{}\n")) {
		got = append(got, fmt.Sprint(line.ID, " ", err))
	}
	if len(got) != 2 || got[0] != "a <nil>" || !strings.HasPrefix(got[1], " in:2: not strict JSON") {
		t.Errorf("got %q", got)
	}
}

func FuzzSubmissions(f *testing.F) {
	f.Add(`{"workflow":"order","id":"a","input":null}`)
	f.Add("{\"workflow\":\"order\",\"input\":{\"a\":[1]}}\n\n{}")
	f.Add("\uFEFF[]\r\n")
	f.Fuzz(func(t *testing.T, file string) {
		checked, err := CheckSubmissions("in", strings.NewReader(file))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "in:") {
				t.Errorf("got %v, want the line named", err)
			}
			return
		}
		lines := 0
		for line, err := range EachSubmission("in", strings.NewReader(file)) {
			if lines++; err != nil || makegood.CheckJobID(line.ID) != nil || limits.WorkflowName.Check(line.Workflow) != nil || line.Input == nil {
				t.Errorf("%q was right, and gives %+v, %v", file, line, err)
			}
		}
		if lines != checked.Lines {
			t.Errorf("%q: %d lines, checked were %d", file, lines, checked.Lines)
		}
	})
}
