package jobformat_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store/jobformat"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// schema returns a message of job.proto.
func schema(t *testing.T, message protoreflect.Name) protoreflect.MessageDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{}}
	files, err := compiler.Compile(t.Context(), "job.proto")
	must(t, "compile job.proto", err)
	return files[0].Messages().ByName(message)
}

// speaks fails the test unless the schema reads the bytes and writes the same.
func speaks(t *testing.T, message protoreflect.Name, data []byte) *dynamicpb.Message {
	t.Helper()
	m := dynamicpb.NewMessage(schema(t, message))
	must(t, "read by the schema", proto.Unmarshal(data, m))
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	must(t, "write by the schema", err)
	if !bytes.Equal(again, data) {
		t.Errorf("%s: the schema writes\n%x\nwant\n%x", message, again, data)
	}
	return m
}

// nothingKept takes away what a later release knows, and all else is as in job.proto.
func nothingKept(j job.Job) job.Job {
	j = j.Clone()
	j.Kept = ""
	for i := range j.Untold {
		j.Untold[i].Kept = ""
	}
	j.Edits = slices.Clone(j.Edits)
	for i := range j.Edits {
		j.Edits[i].Kept = ""
	}
	j.Changes.Kept = ""
	for i := range j.Changes.Pending {
		j.Changes.Pending[i].Kept = ""
	}
	for i := range j.Steps {
		s := &j.Steps[i]
		s.Kept = ""
		for _, a := range []*job.Activity{&s.Forward, &s.Undo} {
			if a.Kept = ""; a.Error != nil {
				e := *a.Error
				e.Kept, a.Error = "", &e
			}
			if a.Wait != nil {
				w := *a.Wait
				w.Kept, a.Wait = "", &w
			}
			if a.Settled != nil {
				s := *a.Settled
				s.Kept, a.Settled = "", &s
			}
			if a.Completion != nil {
				c := *a.Completion
				if c.Error != nil {
					e := *c.Error
					e.Kept, c.Error = "", &e
				}
				c.Kept, a.Completion = "", &c
			}
		}
	}
	return j
}

// job.proto is what others read the format from: what is written here, it reads, and writes as the same bytes.
func TestTheSchemaSaysWhatIsStored(t *testing.T) {
	for name, j := range corpusJobs() {
		t.Run(name, func(t *testing.T) {
			speaks(t, "Job", jobformat.Encode(j, jobformat.Apart{}))
			details := jobformat.NewDetails(j, nil)
			for i, s := range j.Steps {
				p := jobformat.Place{Step: i, Undo: true}
				details.Add(s.Name, p, p.At(j.Steps))
			}
			speaks(t, "Details", details.Encode())
			speaks(t, "Names", jobformat.EncodeNames(j.Steps))
		})
	}
}

// Every field that is written has its number and its name in job.proto, and every field of job.proto is written.
func TestTheSchemaHasTheFieldsThatAreStored(t *testing.T) {
	j := nothingKept(full())
	j.Definition, j.InputHash, j.Birth = "0a", "0b", "0c"
	j.Steps[0].Forward.Output.Inline, j.Steps[0].Forward.Output.Ref = nil, "output#"+j.Steps[0].Name+"#"
	seen := map[protoreflect.FullName]bool{}
	for _, variant := range []job.Job{j, nothingKept(full()), full(), corpusJobs()["done"], corpusJobs()["changes-brief"], withHash(nothingKept(full()), "0a0b"), withHash(nothingKept(full()), "Z")} {
		data := jobformat.Encode(variant, jobformat.Apart{})
		elsewhere := jobformat.Encode(variant, jobformat.Apart{Names: []byte("n"), Details: [][]byte{[]byte("d")}})
		details := jobformat.NewDetails(variant, [][]byte{[]byte("b")})
		details.Add("a", jobformat.Place{Undo: true}, &job.Activity{})
		for _, m := range []*dynamicpb.Message{
			speaks(t, "Job", data), speaks(t, "Job", elsewhere), speaks(t, "Details", details.Encode()),
			speaks(t, "Names", jobformat.EncodeNames(variant.Steps)),
		} {
			note(seen, m)
		}
	}
	unknownTo(t, speaks(t, "Job", jobformat.Encode(j, jobformat.Apart{})))
	for _, name := range []protoreflect.Name{"Job", "Step", "Activity", "Wait", "Completion", "Settlement", "StepError", "Announcement", "MapEdit", "Tolerance", "Details", "Names"} {
		fields := schema(t, name).Fields()
		for i := range fields.Len() {
			if f := fields.Get(i).FullName(); !seen[f] {
				t.Errorf("%s: nothing that was written has it", f)
			}
		}
	}
}

// withHash returns a step whose output is under the key of its attempt, with this at its end.
func withHash(j job.Job, hash string) job.Job {
	s := &j.Steps[0]
	s.Forward.Attempt = 1
	s.Forward.Output = job.Payload{Ref: "output#" + s.Name + "#1#" + hash, Bytes: 7}
	return j
}

// note notes which fields a message has, and those of the messages in it.
func note(seen map[protoreflect.FullName]bool, m protoreflect.ProtoMessage) {
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		seen[f.FullName()] = true
		switch {
		case f.Message() != nil && f.IsList():
			for i := range v.List().Len() {
				note(seen, v.List().Get(i).Message().Interface())
			}
		case f.Message() != nil:
			note(seen, v.Message().Interface())
		}
		return true
	})
}

// unknownTo fails the test if the schema does not know a field of a message.
func unknownTo(t *testing.T, m protoreflect.ProtoMessage) {
	t.Helper()
	if raw := m.ProtoReflect().GetUnknown(); len(raw) > 0 {
		t.Errorf("%s: job.proto does not know %x", m.ProtoReflect().Descriptor().Name(), []byte(raw))
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		for i := 0; f.Message() != nil && f.IsList() && i < v.List().Len(); i++ {
			unknownTo(t, v.List().Get(i).Message().Interface())
		}
		return true
	})
}
