package storetest

import (
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func payloadRules() []rule {
	return []rule{
		{"a payload is written once", payloadOnce},
		{"payloads are kept apart by job and by key", payloadsApart},
		{"a payload may be as large as the limit", payloadLarge},
		{"a payload needs no job yet", payloadBeforeJob},
		{"a definition is kept by its hash and never changed", definitionByHash},
		{"the definition put last is the current one of its name", definitionCurrent},
	}
}

func (w *world) payload(job, key, want string) {
	w.Helper()
	value, err := w.store.Payload(w.ctx, job, key)
	w.want("payload "+key, err, nil)
	w.same("payload "+key, string(value), want)
}

func payloadOnce(w *world) {
	job := w.create(w.job("a"))
	w.want("put", w.store.PutPayload(w.ctx, job.ID, "output#charge#1", []byte(`{"first":"ż"}`)), nil)
	w.want("put of another value", w.store.PutPayload(w.ctx, job.ID, "output#charge#1", []byte(`{"second":true}`)), nil)
	w.payload(job.ID, "output#charge#1", `{"first":"ż"}`)
}

func payloadsApart(w *world) {
	a, b := w.create(w.job("a")), w.create(w.job("b"))
	w.want("put", w.store.PutPayload(w.ctx, a.ID, "input", []byte(`"of a"`)), nil)
	_, err := w.store.Payload(w.ctx, b.ID, "input")
	w.want("payload of the other job", err, store.ErrNotFound)
	_, err = w.store.Payload(w.ctx, a.ID, "output#charge#1")
	w.want("payload of another key", err, store.ErrNotFound)
	w.want("put", w.store.PutPayload(w.ctx, b.ID, "input", []byte(`"of b"`)), nil)
	w.want("put", w.store.PutPayload(w.ctx, a.ID, "output#charge#1", []byte(`"output"`)), nil)
	w.payload(a.ID, "input", `"of a"`)
	w.payload(b.ID, "input", `"of b"`)
	w.payload(a.ID, "output#charge#1", `"output"`)
	w.same("job beside its payloads", w.load(a.ID), a)
}

func payloadLarge(w *world) {
	job := w.create(w.job("a"))
	large := `"` + strings.Repeat("x", makegood.MaxPayloadBytes-2) + `"`
	w.want("put", w.store.PutPayload(w.ctx, job.ID, "input", []byte(large)), nil)
	w.payload(job.ID, "input", large)
}

func payloadBeforeJob(w *world) {
	w.want("put", w.store.PutPayload(w.ctx, w.id("a"), "input", []byte(`1`)), nil)
	w.create(w.job("a"))
	w.payload(w.id("a"), "input", `1`)
}

func definitionByHash(w *world) {
	name, hash := "wf-"+w.prefix, "hash-"+w.prefix
	_, err := w.store.Definition(w.ctx, hash)
	w.want("definition that was not put", err, store.ErrNotFound)
	_, err = w.store.CurrentDefinition(w.ctx, name)
	w.want("current definition of a name that was not put", err, store.ErrNotFound)
	w.want("put", w.store.PutDefinition(w.ctx, name, hash, []byte(`{"name":"ż"}`)), nil)
	w.want("put of other content under the same hash", w.store.PutDefinition(w.ctx, name, hash, []byte(`{}`)), nil)
	w.definition(hash, `{"name":"ż"}`)
}

func (w *world) definition(hash, want string) {
	w.Helper()
	body, err := w.store.Definition(w.ctx, hash)
	w.want("definition "+hash, err, nil)
	w.same("definition "+hash, string(body), want)
}

func (w *world) current(name, want string) {
	w.Helper()
	hash, err := w.store.CurrentDefinition(w.ctx, name)
	w.want("current definition", err, nil)
	w.same("current definition", hash, want)
}

func definitionCurrent(w *world) {
	name, other := "wf-"+w.prefix, "other-"+w.prefix
	one, two := "one-"+w.prefix, "two-"+w.prefix
	w.want("put one", w.store.PutDefinition(w.ctx, name, one, []byte(`1`)), nil)
	w.current(name, one)
	w.want("put two", w.store.PutDefinition(w.ctx, name, two, []byte(`2`)), nil)
	w.current(name, two)
	w.want("put one under another name", w.store.PutDefinition(w.ctx, other, one, []byte(`1`)), nil)
	w.current(name, two)
	w.current(other, one)
	w.want("put one again", w.store.PutDefinition(w.ctx, name, one, []byte(`1`)), nil)
	w.current(name, one)
	w.definition(one, `1`)
	w.definition(two, `2`)
}
