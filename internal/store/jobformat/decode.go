package jobformat

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"

	"google.golang.org/protobuf/encoding/protowire"
)

// Stored is a job as its data says it, while its names and details may be missing still.
type Stored struct {
	Job job.Job
	// NamesAt is the hash under which the names of the steps are kept, if they are not in the data.
	NamesAt []byte
	// DetailsAt are the hashes under which the details of the activities in Detailed are kept.
	DetailsAt [][]byte
	Detailed  []Place
	// ownRefs are the activities with their output under a key of their attempt, which takes the step's name.
	ownRefs []Place
}

// Decode reads a job that Encode wrote. store.ErrDamaged; store.ErrNewer, together with the readable part, of a job
// that this release cannot read whole. Newer says whether this release may decide about a job that it has read.
func Decode(data []byte) (Stored, error) {
	created, err := readFront(data)
	if err != nil {
		return Stored{}, fmt.Errorf("decode job: %w", err)
	}
	d := decoder{epoch: epochOf(created)}
	d.Job.CreatedAt = created
	if d.Job.Kept, err = readFields(data, d.field); err == nil {
		err = d.assemble()
	}
	if err != nil {
		return Stored{}, fmt.Errorf("decode job: %w", err)
	}
	return d.Stored, d.newer
}

// DecodeWhole is Decode of a job without parts that are kept apart.
func DecodeWhole(data []byte) (job.Job, error) {
	s, err := Decode(data)
	if err == nil && (s.NamesAt != nil || len(s.Detailed) > 0) {
		return job.Job{}, damaged("names or details of a job are not with it")
	}
	return s.Job, err
}

// CreatedAt returns the time of a job's birth, from the front of its data; zero when that cannot be read.
func CreatedAt(data []byte) time.Time {
	created, err := readFront(data)
	if err != nil {
		return time.Time{}
	}
	return created
}

// Needs returns the Needs of a job without reading its other fields; 0 when that cannot be read.
func Needs(data []byte) int {
	needs := 0
	_, err := readFields(data, func(f *field) bool {
		if f.num == jobNeeds {
			needs = f.level()
		}
		return true
	})
	if err != nil {
		return 0
	}
	return needs
}

// readFront reads the first two fields of a job, or of details.
func readFront(data []byte) (created time.Time, err error) {
	rest, err := readFormat(data)
	if err != nil || len(rest) == 0 {
		return time.Time{}, err
	}
	var f field
	if err := f.next(rest); err != nil || f.num != jobCreatedAt {
		return time.Time{}, err
	}
	if created = f.time(0); f.bad {
		return time.Time{}, damaged("the time of birth has wire type %d", f.typ)
	}
	return created, nil
}

// readFormat reads the first field of a message that is stored by itself, and returns the rest. Data that was stored
// before there was this format begins otherwise.
func readFormat(data []byte) (rest []byte, err error) {
	var f field
	switch err := f.next(data); {
	case err != nil || f.num != jobFormat || f.typ != protowire.VarintType || f.n == 0:
		return nil, damaged("%d bytes that do not begin as this format does: they are broken, or of a Makegood of before it", len(data))
	case f.n > format:
		return nil, fmt.Errorf("%w: it is of format %d, this release knows format %d", store.ErrNewer, f.n, format)
	}
	return data[len(f.raw):], nil
}

// decoder reads one job. A step has parts in several fields, which are put together at the end.
type decoder struct {
	Stored
	epoch int64

	names, activities, stepsKept [][]byte
	summaries, numbers           column
	// inputSized: the size of the input is not that of its inline value.
	inputSized bool
	// labels are a name and its value, and so on.
	labels []string
	// changes are numbers of transitions.
	changes []byte
	// newer is why this release cannot read all of the job.
	newer error
}

func (d *decoder) field(f *field) bool {
	return d.head(f) || d.parts(f) || d.tail(f) || d.texts(f)
}

// head reads what most jobs have.
func (d *decoder) head(f *field) bool {
	j := &d.Job
	switch f.num {
	case jobFormat:
		f.uint()
	case jobCreatedAt:
		// It was read before everything that is counted from it.
		if t := f.time(0); !t.Equal(j.CreatedAt) {
			f.bad = true
		}
	case jobDefinitionHex:
		j.Definition = f.hash()
	case jobInputHashHex:
		j.InputHash = f.hash()
	case jobDesired:
		j.Desired = stateOf(f.uint(), processStates())
	case jobRound:
		j.Round = f.int()
	case jobBirthHex:
		j.Birth = f.hash()
	case jobSecret:
		j.Secret = f.copied()
	case jobInputInline:
		j.Input.Inline = f.copied()
	case jobTransitions:
		j.Transitions = f.int()
	default:
		return false
	}
	return true
}

// parts reads the fields of the steps, and of the parts that are kept apart.
func (d *decoder) parts(f *field) bool {
	switch f.num {
	case jobNames:
		d.names = append(d.names, f.bytes())
	case jobSummaries:
		d.summaries.in = append(d.summaries.in, f.bytes()...)
	case jobActivities:
		d.activities = append(d.activities, f.bytes())
	case jobNumbers:
		d.numbers.in = append(d.numbers.in, f.bytes()...)
	case jobSteps:
		d.stepsKept = append(d.stepsKept, f.bytes())
	case jobNamesAt:
		d.NamesAt = f.copied()
	case jobDetailsAt:
		d.DetailsAt = append(d.DetailsAt, f.copied())
	case jobInputBytes:
		d.Job.Input.Bytes, d.inputSized = f.int(), true
	default:
		return false
	}
	return true
}

// tail reads numbers and times that most jobs have not.
func (d *decoder) tail(f *field) bool {
	j := &d.Job
	switch f.num {
	case jobSeq:
		j.Seq = f.int()
	case jobNeeds:
		j.Needs = f.level()
	case jobDeadline:
		j.Deadline = f.time(d.epoch)
	case jobFinishedAt:
		j.FinishedAt = f.time(d.epoch)
	case jobPausedAt:
		j.PausedAt = f.time(d.epoch)
	case jobStartAt:
		j.StartAt = f.time(d.epoch)
	case jobIncarnation:
		j.Incarnation = f.int()
	case jobRemindAt:
		j.RemindAt = f.time(d.epoch)
	case jobTellTries:
		j.TellTries = f.int()
	case jobTellAt:
		j.TellAt = f.time(d.epoch)
	case jobUnheard:
		j.Unheard = f.int()
	case jobRoundsAgain:
		j.RoundsAgain = f.int()
	case jobAnotherRound:
		j.AnotherRound = f.flag()
	case jobNextRoundAt:
		j.NextRoundAt = f.time(d.epoch)
	case jobHistoryCount:
		j.History.Count = f.int()
	case jobGone:
		j.Gone = f.int()
	case jobTimeout:
		j.Timeout = makegood.Duration(f.int())
	case jobPausedToo:
		j.PausedToo = f.flag()
	case jobExpectBy:
		j.ExpectBy = f.time(d.epoch)
	case jobWarnAt:
		j.WarnAt = f.time(d.epoch)
	default:
		return false
	}
	return true
}

// texts reads strings that most jobs have not, the receivers to be told, and the usage.
func (d *decoder) texts(f *field) bool {
	j := &d.Job
	switch f.num {
	case jobDefinition:
		j.Definition = f.text()
	case jobInputHash:
		j.InputHash = f.text()
	case jobBirth:
		j.Birth = f.text()
	case jobInputRef:
		j.Input.Ref = f.text()
	case jobReason:
		j.Reason = f.text()
	case jobFirstReason:
		j.FirstReason = f.text()
	case jobRoundAsked:
		j.RoundAsked = f.flag()
	case jobRequests:
		j.Requests = append(j.Requests, f.text())
	case jobFormer:
		j.Former = append(j.Former, readPayload(f))
	case jobAnswers:
		j.Answers = append(j.Answers, f.text())
	case jobReplyTo:
		j.ReplyTo = f.text()
	case jobUntold:
		j.Untold = append(j.Untold, d.announcement(f))
	case jobRequestedBy:
		j.RequestedBy = f.text()
	case jobHistoryHead:
		j.History.Head = f.text()
	case jobHistoryFirsts:
		j.History.Firsts = f.text()
	case jobHeldBy:
		j.HeldBy = f.text()
	case jobHeldReason:
		j.HeldReason = f.text()
	case jobTenant:
		j.Tenant = f.text()
	case jobLabels:
		d.labels = append(d.labels, f.text())
	case jobTrace:
		j.Trace = f.copied()
	case jobSpentData:
		f.counts(&j.Spent.Writes, &j.Spent.HalfReads)
	case jobSpentWork:
		f.counts(&j.Spent.Requests, &j.Spent.Invocations, &j.Spent.GBMicros)
	case jobChanges:
		j.Changes = readChanges(f, d.epoch)
	case jobChangesBrief:
		d.changes = f.copied()
	default:
		return false
	}
	return true
}

// label gives the job its labels.
func (d *decoder) label() error {
	if len(d.labels)%2 != 0 {
		return damaged("a label without its value")
	}
	for pair := range slices.Chunk(d.labels, 2) {
		if d.Job.Labels == nil {
			d.Job.Labels = make(map[string]string, len(d.labels)/2)
		}
		d.Job.Labels[pair[0]] = pair[1]
	}
	return nil
}

func (d *decoder) announcement(f *field) (a job.Announcement) {
	a.Kept = f.message(func(f *field) bool {
		switch f.num {
		case toldSeq:
			a.Seq = f.int()
		case toldState:
			a.ProcessState = stateOf(f.uint(), processStates())
		case toldReason:
			a.Reason = f.text()
		case toldAt:
			a.At = f.time(d.epoch)
		case toldOperator:
			a.Operator = f.flag()
		case toldListener:
			a.Listener = f.flag()
		case toldExpectBy:
			a.ExpectBy = f.time(d.epoch)
		default:
			return false
		}
		return true
	})
	return a
}
