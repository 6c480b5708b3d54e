package release

// Field is what the release that comes after this one adds to each job, step and activity that it stores, as a protobuf
// field that this one does not know; Detail is one that it adds to activities, among their details.
const (
	Field  = "\xc2\x25\x05later"
	Detail = "\xfa\x03\x06detail"
)

// NewerOnly ends the ids of jobs that this release must leave to the next.
const NewerOnly = ".newer"

// Later is what the release that comes after this one changes, in tests of this one: it knows the next level, adds
// fields to what is stored and to every message, and needs its level for some jobs.
func Later() []Change {
	return []Change{
		{
			File: "internal/store/jobformat/jobformat.go",
			Old:  "	Level = job.LevelGates\n",
			New:  "	Level = job.LevelGates + 1\n",
		},
		{
			File: "internal/store/jobformat/encode.go",
			Old:  "func Encode(j job.Job, apart Apart) []byte {\n",
			New: `func Encode(j job.Job, apart Apart) []byte {
	j = j.Clone()
	add := func(kept *string, fields string, when bool) {
		if *kept == "" && when {
			*kept = fields
		}
	}
	add(&j.Kept, "\xc2\x25\x05later", true)
	for i := range j.Steps {
		s := &j.Steps[i]
		add(&s.Kept, "\xc2\x25\x05later", true)
		add(&s.Forward.Kept, "\xfa\x03\x06detail\xc2\x25\x05later", s.Forward.Attempt > 0)
		add(&s.Undo.Kept, "\xfa\x03\x06detail\xc2\x25\x05later", s.Undo.Attempt > 0)
	}
	if strings.HasSuffix(j.ID, ".newer") {
		j.Needs = Level
	}
`,
		},
		{
			File: "internal/wire/encode.go",
			Old:  "func acceptable(text string) string {\n",
			New:  "func acceptable(text string) string {\n	text = strings.Replace(text, `{`, `{\"later\":{\"v\":1},`, 1)\n",
		},
	}
}
