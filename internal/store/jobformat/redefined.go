package jobformat

import "github.com/makegood-dev/makegood/internal/job"

// former writes the inputs that a job had before.
func (e *encoder) former(inputs []job.Payload) {
	for _, p := range inputs {
		w := e.begin()
		w.bytes(payloadInline, p.Inline)
		w.text(payloadRef, p.Ref)
		w.size(payloadBytes, p)
		e.message(jobFormer, w.out)
	}
}

func readPayload(f *field) (p job.Payload) {
	sized := false
	f.message(func(f *field) bool {
		switch f.num {
		case payloadInline:
			p.Inline = f.copied()
		case payloadRef:
			p.Ref = f.text()
		case payloadBytes:
			p.Bytes, sized = f.int(), true
		}
		return true
	})
	if !sized {
		p.Bytes = len(p.Inline)
	}
	return p
}

// redefined writes the state of an activity before its job was moved or got another input. It stays with the job,
// because it decides which steps are undone.
func (w *writer) redefined(a *job.Activity) {
	w.int(actGeneration, a.Generation)
	w.int(actFormer, a.Former)
	w.text(actInline, a.Inline)
}

// redefined reads what writer.redefined wrote.
func (r *activityReader) redefined(f *field) bool {
	switch f.num {
	case actGeneration:
		r.Generation = f.int()
	case actFormer:
		r.Former = f.int()
	case actInline:
		r.Inline = f.text()
	default:
		return false
	}
	return true
}

// formerThere holds that the inputs are there that activities name.
func (d *decoder) formerThere() error {
	for i, s := range d.Job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.Former < 0 || a.Former > len(d.Job.Former) {
				return damaged("step %d was done with the former input %d of %d", i, a.Former, len(d.Job.Former))
			}
		}
	}
	return nil
}
