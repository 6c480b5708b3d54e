package wire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestAnAnnouncementComesBackAsItWent(t *testing.T) {
	want := job.Announcement{
		Seq: 3, ProcessState: makegood.JobError, Reason: "step <ship> gave up: \"\uFFFE\"",
		At: time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC),
	}
	body, err := wire.EncodeAnnouncement("order-1", "order", want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(body, '\uFFFE') || !strings.Contains(body, `step <ship>`) {
		t.Errorf("got %s, want no characters that SQS refuses, and no escapes of HTML", body)
	}
	job, workflow, got, err := wire.DecodeAnnouncement(body)
	if job != "order-1" || workflow != "order" || got != want || err != nil {
		t.Errorf("got %q, %q, %+v, %v, want order-1, order, %+v", job, workflow, got, err, want)
	}
}

// Whoever reads announcements sees every field each time, the empty ones too.
func TestAnAnnouncementHasAllItsFields(t *testing.T) {
	got, err := wire.EncodeAnnouncement("a", "b", job.Announcement{Seq: 1, ProcessState: makegood.JobProcessed, At: time.Unix(0, 0).UTC()})
	want := `{"v":1,"type":"Announcement","job":"a","workflow":"b","seq":1,"processState":"Processed","reason":"","at":"1970-01-01T00:00:00Z"}`
	if got != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	got, err = wire.EncodeAgentAlert("payments", "")
	if want := `{"v":1,"type":"AgentSilent","agent":"payments"}`; got != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestWhatIsNoAnnouncementIsPoisonWithItsReason(t *testing.T) {
	for body, want := range map[string]string{
		`{`: "unexpected EOF",
		`{"v":1,"type":"Task","job":"a","processState":"Error","seq":1}`: `type "Task"`,
		`{"v":1,"type":"Announcement","processState":"Error","seq":1}`:   "must name job",
		`{"v":1,"type":"Announcement","job":"a","seq":1}`:                "must name job and processState",
		`{"v":1,"type":"Announcement","job":"a","processState":"Error"}`: "seq 0",
	} {
		if _, _, _, err := wire.DecodeAnnouncement(body); !errors.Is(err, wire.ErrPoison) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want poison with %q", body, err, want)
		}
	}
}
