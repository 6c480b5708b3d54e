package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Every example in docs/messages.md is read by the code that reads the queues, and written the same.
func TestTheExamplesInTheDocsAreTheMessages(t *testing.T) {
	text, err := os.ReadFile("../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, part := range strings.Split(string(text), "```json\n")[1:] {
		example, _, _ := strings.Cut(part, "\n```")
		examples++
		written := again(t, example)
		var got, want any
		if err := json.Unmarshal([]byte(written), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(example), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the docs say\n%s\nthe code writes\n%s", example, written)
		}
	}
	if examples < 8 {
		t.Errorf("found %d examples in the docs", examples)
	}
}

// again reads a message and writes it.
func again(t *testing.T, body string) string {
	t.Helper()
	if strings.Contains(body, `"Task"`) || strings.Contains(body, `"SecretTask"`) {
		task, err := DecodeTask(body)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		written, err := EncodeTask(task)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	if strings.Contains(body, `"Announcement"`) {
		job, workflow, a, err := DecodeAnnouncement(body)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		written, err := EncodeAnnouncement(job, workflow, a)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	in, err := DecodeIncoming(body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if in.Submit != nil {
		written, err := EncodeSubmit(*in.Submit)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	if in.Schedule != nil {
		written, err := EncodeScheduleDue(*in.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	if in.HoldsDue != nil {
		written, err := EncodeHoldsDue(*in.HoldsDue)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	written, err := EncodeEvent(in.Job, in.Event)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestWhatIsNotAMessageIsPoisonAndSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, body, why string }{
		{"nothing", ``, "EOF"},
		{"not JSON", `{`, "unexpected EOF"},
		{"not UTF-8", "{\"v\":1,\"type\":\"Submitted\",\"job\":\"\xff\"}", "UTF-8"},
		{"no version", `{"type":"Submitted","job":"j"}`, "version 0"},
		{"a version below the first", `{"v":-1,"type":"Submitted","job":"j"}`, "version -1"},
		{"a version that is no number", `{"v":"2","type":"Submitted","job":"j"}`, "cannot unmarshal"},
		{"a version that is no release's", `{"v":10000,"type":"Submitted","job":"j"}`, "version 10000"},
		{"no type", `{"v":2,"job":"j"}`, "type"},
		{"a type that is no word", `{"v":2,"type":"Sub mitted","job":"j"}`, "Sub mitted"},
		{"a field of another kind", `{"v":1,"type":"Submitted","job":{}}`, "cannot unmarshal"},
		{"a message of another queue", `{"v":1,"type":"Task","job":"j"}`, `"Task"`},
		{"no job", `{"v":1,"type":"Submitted"}`, "job"},
		{"something behind it", `{"v":1,"type":"Submitted","job":"j"}{}`, "follows"},
		{"a reply without a step", `{"v":1,"type":"StepSucceeded","job":"j","attempt":1}`, "step"},
		{"a reply without an attempt", `{"v":1,"type":"StepSucceeded","job":"j","step":"s"}`, "attempt"},
		{"a failure without an error", `{"v":1,"type":"StepFailed","job":"j","step":"s","attempt":1}`, "error"},
		{"a success with an error", `{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1,"error":{"message":"no","retryable":false,"applied":"no"}}`, "error"},
		{"what the engine tells itself", `{"v":1,"type":"Interrupted","job":"j","attempt":1}`, `"Interrupted"`},
		{"what the engine tells itself, of a later version", `{"v":2,"type":"AttemptClosed","job":"j"}`, `"AttemptClosed"`},
		{"a request", `{"v":1,"type":"Requested","job":"j"}`, `"Requested"`},
		{"the answer to a closing", `{"v":1,"type":"AttemptClosed","job":"j"}`, `"AttemptClosed"`},
		{"a task that was refused", `{"v":1,"type":"DispatchRefused","job":"j"}`, `"DispatchRefused"`},
		{"too large", `{"v":1,"type":"Submitted","job":"` + strings.Repeat("j", limits.MaxMessageBytes) + `"}`, "limit"},
	} {
		_, _, err := DecodeEvent(c.body)
		if !errors.Is(err, ErrPoison) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want poison that speaks of %s", c.name, err, c.why)
		}
	}
}

func TestATaskThatSaysTooLittleIsPoison(t *testing.T) {
	whole := makegood.Task{
		Job: "j", Step: "s", Round: 1, Attempt: 1, Agent: "a", Action: "x", Input: json.RawMessage(`1`), Key: "j/s/1",
		SentAt: time.UnixMilli(1).UTC(), StartBy: time.UnixMilli(2).UTC(), Timeout: makegood.Second, ReplyTo: "events",
		Birth: "b", Token: "1.t", ClaimUntil: time.UnixMilli(3).UTC(),
	}
	if body, err := EncodeTask(whole); err != nil {
		t.Fatal(err)
	} else if got, err := DecodeTask(body); err != nil || !reflect.DeepEqual(got, whole) {
		t.Fatalf("got %+v, %v, want %+v", got, err, whole)
	}
	for name, spoil := range map[string]func(*makegood.Task){
		"job":        func(t *makegood.Task) { t.Job = "" },
		"a job's id": func(t *makegood.Task) { t.Job = "j j" },
		"step":       func(t *makegood.Task) { t.Step = "" },
		"agent":      func(t *makegood.Task) { t.Agent = "" },
		"action":     func(t *makegood.Task) { t.Action = "" },
		"key":        func(t *makegood.Task) { t.Key = "" },
		"replyTo":    func(t *makegood.Task) { t.ReplyTo = "" },
		"attempt":    func(t *makegood.Task) { t.Attempt = 0 },
		"round":      func(t *makegood.Task) { t.Round = 0 },
		"timeout":    func(t *makegood.Task) { t.Timeout = 0 },
		"heartbeat":  func(t *makegood.Task) { t.Timeout = 2 * makegood.Hour },
		"completeBy": func(t *makegood.Task) { t.Shared = true },
		"birth":      func(t *makegood.Task) { t.Birth = "" },
		"token":      func(t *makegood.Task) { t.Token = "" },
		"claimUntil": func(t *makegood.Task) { t.ClaimUntil = time.Time{} },
	} {
		spoilt := whole
		spoil(&spoilt)
		body, err := EncodeTask(spoilt)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeTask(body); !errors.Is(err, ErrPoison) {
			t.Errorf("without %s: got %v, want poison", name, err)
		}
	}
}

// A release that knows nothing of heartbeats reads timeoutMs, and moves CompleteBy by that.
func TestWhatATaskMayBeSilentIsItsTimeoutToWhoeverKnowsNoHeartbeat(t *testing.T) {
	task, err := DecodeTask(long(60_000, 21_600_000))
	if err != nil || task.Heartbeat != makegood.Minute || task.Timeout != 6*makegood.Hour || domain.Silence(task) != makegood.Minute {
		t.Fatalf("got heartbeat %v, timeout %v, silence %v, %v", task.Heartbeat, task.Timeout, domain.Silence(task), err)
	}
	if written := again(t, long(60_000, 21_600_000)); !strings.Contains(written, `"timeoutMs":60000,"totalMs":21600000,`) {
		t.Errorf("written as %s", written)
	}
	for _, bad := range []string{long(60_000, 59_999), long(60_000, 30*86_400_000+1), long(60_000, -1), long(3_600_001, 7_200_000)} {
		if _, err := DecodeTask(bad); !errors.Is(err, ErrPoison) {
			t.Errorf("%s: got %v, want poison", bad, err)
		}
	}
	shared := strings.Replace(long(60_000, 21_600_000), `"exclusive":true`, `"exclusive":false,"completeBy":"2026-11-20T10:10:00Z"`, 1)
	if _, err := DecodeTask(shared); !errors.Is(err, ErrPoison) {
		t.Errorf("a task that nobody claims: got %v, want poison", err)
	}
}

// long is a task of a step that heartbeats.
func long(timeout, total int64) string {
	return fmt.Sprintf(`{"v":1,"type":"Task","job":"j","workflow":"w","step":"s","round":1,"attempt":1,"agent":"a","action":"x","input":1,"key":"j/s/1",`+
		`"sentAt":"2026-11-20T10:00:00Z","startBy":"2026-11-20T10:10:00Z","timeoutMs":%d,"totalMs":%d,"exclusive":true,"replyTo":"events",`+
		`"birth":"b","claimUntil":"2026-12-04T10:00:00Z","token":"1.t"}`, timeout, total)
}

func TestAnErrorIsAppliedUnlessItSaysNo(t *testing.T) {
	for said, want := range map[string]makegood.Applied{
		`"no"`: makegood.AppliedNo, `"unknown"`: makegood.AppliedUnknown, `"yes"`: makegood.AppliedUnknown, `""`: makegood.AppliedUnknown,
	} {
		_, e, err := DecodeEvent(`{"v":1,"type":"StepFailed","job":"j","step":"s","attempt":1,"error":{"message":"m","retryable":true,"applied":` + said + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.(job.StepFailed).Error.Applied; got != want {
			t.Errorf("applied %s: got %q, want %q", said, got, want)
		}
	}
}

// A payload of 256 KB fits into a message, whatever its characters, and none of them is one that SQS
// refuses.
func TestAPayloadWithinItsLimitFitsIntoAMessage(t *testing.T) {
	for _, c := range []string{"x", "<", "&", "\uFFFE", "\uFFFF", "\u2028"} {
		value := []byte(`"` + strings.Repeat(c, (makegood.MaxPayloadBytes-2)/len(c)) + `"`)
		body, err := EncodeEvent("j", job.StepSucceeded{Reply: job.Reply{Step: "s", Attempt: 1}, Output: Inline(value)})
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > limits.MaxMessageBytes || strings.ContainsAny(body, "\uFFFE\uFFFF") {
			t.Errorf("%q: got %d bytes, raw %v", c, len(body), strings.ContainsAny(body, "\uFFFE\uFFFF"))
		}
		_, e, err := DecodeEvent(body)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := errors.Join(json.Unmarshal(e.(job.StepSucceeded).Output.Inline, &got), json.Unmarshal(value, &want)); err != nil || got != want {
			t.Errorf("%q came back as another value, %v", c, err)
		}
	}
}

// What can be written can be read: an output that was taken when there was no limit of its depth may be too deep inside of a message.
func TestATaskThatNobodyCouldReadIsNotWritten(t *testing.T) {
	task, err := DecodeTask(messages(t)["testdata/format-1/task-undo.json"])
	if err != nil {
		t.Fatal(err)
	}
	for depth, ok := range map[int]bool{9_998: true, 9_999: false, 10_000: false, 10_001: false} {
		task.Undo.Output = []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		body, err := EncodeTask(task)
		if (err == nil) != ok {
			t.Errorf("%d deep: got %v, want written: %v", depth, err, ok)
			continue
		}
		if _, readErr := DecodeTask(body); ok && readErr != nil {
			t.Errorf("%d deep: written, and read with %v", depth, readErr)
		}
	}
}

// Above its limit an output is refused where it is measured first, by a message as by a request.
func TestACompletionWithAnOutputThatIsNestedTooDeepIsPoison(t *testing.T) {
	token := job.WriteCompletionToken("j", job.Place{Step: "s", Round: 1}, "code")
	for depth, ok := range map[int]bool{500: true, 501: false} {
		output := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		_, _, err := DecodeEvent(`{"v":1,"type":"StepCompleted","completion":"` + token + `","output":` + output + `}`)
		if (err == nil) != ok || !ok && !errors.Is(err, ErrPoison) {
			t.Errorf("%d deep: got %v, want taken: %v", depth, err, ok)
		}
	}
}
