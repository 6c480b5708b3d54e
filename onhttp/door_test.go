package onhttp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestWhatIsTheURLOfAnEngine(t *testing.T) {
	for at, good := range map[string]bool{
		"http://h": true, "https://h:1/below/": true,
		"": false, "h:1": false, "ftp://h": false, "http:///x": false, "http://%zz": false, "http://h?x": false, "http://h#x": false,
	} {
		o, err := working{Options{URL: at, Concurrency: 7}, doing(nil)}.complete()
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDoor(o)
		if (err == nil) != good {
			t.Errorf("%q: got %v, want it taken: %v", at, err, good)
		}
		if good && d.http.Transport.(*http.Transport).MaxIdleConnsPerHost != 8 {
			t.Errorf("%q: a connection is not kept for each attempt and for who asks for tasks", at)
		}
	}
}

// A process that has stopped leaves no connection behind.
func TestTheConnectionsEndWithTheProcess(t *testing.T) {
	closed := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		gives(t, w, 1000)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	if err := Run(ctx, doing(nil), Options{URL: server.URL, Logger: quiet()}); err != nil {
		t.Error(err)
	}
	select {
	case <-closed:
	case <-time.After(2 * time.Minute):
		t.Error("a connection is open still")
	}
}

// Each question shows the token, if there is one, and says what it is; what is in it comes as it is.
func TestWhatAQuestionShows(t *testing.T) {
	for token, want := range map[string]string{"": "", "s3cret": "Bearer s3cret"} {
		var got *http.Request
		var body string
		d := doorAt(t, Options{Token: token, Instance: "crane-1"}, func(r *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(r.Body)
			got, body = r, string(text)
			if err != nil {
				return nil, err
			}
			return answers(http.StatusOK, `{}`)
		})
		if err := d.reply(t.Context(), `{"a":"<&>"}`); err != nil {
			t.Fatal(err)
		}
		if got.URL.String() != "http://engine/below/api/agents/crane/replies" || got.Method != http.MethodPost || body != `{"a":"<&>"}`+"\n" {
			t.Errorf("asked %s %v with %s", got.Method, got.URL, body)
		}
		if got.Header.Get("Authorization") != want || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("its headers are %v, want Authorization %q", got.Header, want)
		}
		if _, err := d.take(t.Context(), "r-1", 3, 20*time.Second); err != nil || body != `{"instance":"crane-1","max":3,"wait":20,"request":"r-1"}`+"\n" {
			t.Errorf("asked %s, %v", body, err)
		}
	}
}

// An answer has 30 seconds beside what the engine was asked to wait, and a heartbeat a quarter of what its attempt has.
func TestHowLongAnAnswerIsWaitedFor(t *testing.T) {
	heartbeat := func(every makegood.Duration) func(context.Context, *door) error {
		return func(ctx context.Context, d *door) error {
			task := taskOf("crane")
			task.Heartbeat = every
			_, err := d.heartbeat(ctx, task, "outside:x", nil)
			return err
		}
	}
	for name, c := range map[string]struct {
		ask  func(context.Context, *door) error
		want time.Duration
	}{
		"tasks": {func(ctx context.Context, d *door) error {
			_, err := d.take(ctx, "r", 1, 20*time.Second)
			return err
		}, 50 * time.Second},
		"a reply":                      {func(ctx context.Context, d *door) error { return d.reply(ctx, `{}`) }, 30 * time.Second},
		"a heartbeat":                  {heartbeat(10 * makegood.Minute), 30 * time.Second},
		"a heartbeat of short silence": {heartbeat(10 * makegood.Second), 2500 * time.Millisecond},
		"a heartbeat of the shortest":  {heartbeat(100 * makegood.Millisecond), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := c.ask(t.Context(), doorAt(t, Options{}, hangs))
				if took := time.Since(began); took != c.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v after %v, want it after %v", err, took, c.want)
				}
			})
		})
	}
}

// The token is shown to the engine alone, wherever that points.
func TestNoRedirectIsFollowed(t *testing.T) {
	asked := 0
	d := doorAt(t, Options{Token: "s3cret"}, func(*http.Request) (*http.Response, error) {
		asked++
		answer, err := answers(http.StatusTemporaryRedirect, "")
		answer.Header.Set("Location", "http://elsewhere/")
		return answer, err
	})
	if err := d.reply(t.Context(), `{}`); err == nil || asked != 1 {
		t.Errorf("got %v after %d requests, want an error after one", err, asked)
	}
}

// What is wrong is what the engine says is wrong. What no engine says is never final.
func TestWhatAnEngineSaysIsWrong(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	for body, want := range map[string]problem{
		`{"error": "no", "final": true}`:               {text: "no", final: true},
		`{"error": "no"}`:                              {text: "no"},
		`{"error": "` + long + `"}`:                    {text: long},
		`{"error": "` + long + long + `"}`:             {text: "no engine answers so"},
		`{"final": true}`:                              {text: "no engine answers so"},
		`{"error": "no", "final": true} and something`: {text: "no engine answers so"},
		`<html>`: {text: "no engine answers so"},
		``:       {text: "no engine answers so"},
	} {
		answer, _ := answers(418, body)
		want.status = 418
		if got := problemOf(answer); *got != want {
			t.Errorf("%.40s: got %.60v, want %.60v", body, got, want)
		}
		answer, _ = answers(418, "")
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), broken{}))
		want.text, want.final = "no engine answers so", false
		if got := problemOf(answer); len(body) < 64<<10 && *got != want {
			t.Errorf("%.40s, and it breaks off: got %.60v, want %.60v", body, got, want)
		}
	}
}

// broken is a line that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// As long an answer is read as an engine may give: a batch of the largest messages, and a kilobyte around each.
func TestHowLongAnAnswerIsRead(t *testing.T) {
	const most = limits.MaxBatch * (limits.MaxMessageBytes + 1024)
	head, tail := `{"x": "`, `"}`
	for length, good := range map[int]bool{most: true, most + 1: false} {
		d := doorAt(t, Options{}, func(*http.Request) (*http.Response, error) {
			return answers(http.StatusOK, head+strings.Repeat("x", length-len(head)-len(tail))+tail)
		})
		if _, err := d.take(t.Context(), "r", 1, 0); (err == nil) != good {
			t.Errorf("%d bytes: got %v, want them read: %v", length, err, good)
		}
	}
}

// A task comes with the claim that the engine made for it, and its time counts on from when that was written.
func TestATaskComesWithItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := time.Now().UTC()
		d := doorAt(t, Options{}, func(*http.Request) (*http.Response, error) {
			text, err := json.Marshal(agentdoor.TasksGiven{HeldMs: 20_000, Tasks: []agentdoor.TaskGiven{{
				Task: encoded(t, taskOf("crane")), LockedBy: "outside:x", StartedAt: from, CompleteBy: from.Add(time.Minute), LeftMs: 60_000,
			}}})
			if err != nil {
				return nil, err
			}
			return answers(http.StatusOK, string(text))
		})
		taken, err := d.take(t.Context(), "r", 1, 20*time.Second)
		if err != nil || len(taken) != 1 {
			t.Fatalf("got %d tasks, %v", len(taken), err)
		}
		want := job.Claim{Attempt: 1, LockedBy: "outside:x", StartedAt: domain.Instant(from), CompleteBy: domain.Instant(from.Add(time.Minute))}
		if got := taken[0]; !reflect.DeepEqual(got.Claim, want) || !got.Expires.Equal(from.Add(80*time.Second)) {
			t.Errorf("got %+v until %v, want %+v until 80 s from %v", got.Claim, got.Expires, want, from)
		}
	})
}

// A reply that got no answer may have been taken: it is not refused.
func TestAReplyWithoutAnAnswerIsNotRefused(t *testing.T) {
	d := doorAt(t, Options{}, func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	if err := d.reply(t.Context(), `{}`); !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*queue.RefusedError)) {
		t.Errorf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func payloadsAt(t *testing.T, l line) payloads {
	t.Helper()
	p, err := doorAt(t, Options{Token: "s3cret"}, l).payloadsOf(taskOf("crane"), "outside:x")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// holds looks at what each request about payloads says: of which attempt it is, and that it may ask.
func holds(t *testing.T, r *http.Request) {
	t.Helper()
	if got, want := r.Header.Get(agentdoor.HolderHeader), `{"job":"j","step":"lift","attempt":1,"token":"1.t","lockedBy":"outside:x"}`; got != want {
		t.Errorf("it is of %s, want %s", got, want)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer s3cret" {
		t.Errorf("it shows the token %q", got)
	}
}

func refTo(text string) makegood.Payload {
	sum := sha256.Sum256([]byte(text))
	return makegood.Payload{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text))}
}

// onlyRead can be read once.
type onlyRead struct{ io.Reader }

// Bytes go with their length where it is known, and are sent once the engine says so; no bytes go without a body.
func TestHowAPayloadIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		from   io.Reader
		text   string
		length int64
		expect string
	}{
		"what can be read again": {strings.NewReader("text"), "text", 4, "100-continue"},
		"what comes once":        {onlyRead{strings.NewReader("text")}, "text", -1, "100-continue"},
		"nothing":                {strings.NewReader(""), "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
				holds(t, r)
				if r.Method != http.MethodPut || r.URL.String() != "http://engine/below/api/agents/crane/payloads" {
					t.Errorf("asked %s %v", r.Method, r.URL)
				}
				if r.ContentLength != c.length || r.Header.Get("Expect") != c.expect || r.Header.Get("Content-Type") != "application/octet-stream" || (r.Body == http.NoBody) != (c.text == "") {
					t.Errorf("sent %d bytes of %T with %v", r.ContentLength, r.Body, r.Header)
				}
				text, err := io.ReadAll(r.Body)
				if err != nil || string(text) != c.text {
					t.Errorf("sent %q, %v", text, err)
				}
				stored, err := json.Marshal(refTo(string(text)))
				if err != nil {
					return nil, err
				}
				return answers(http.StatusCreated, string(stored))
			})
			w, err := p.Write(t.Context(), payload.Place{Job: "j"}, c.from)
			if want := refTo(c.text); err != nil || w.Bytes != want.Bytes || w.SHA256 != want.SHA256 {
				t.Errorf("got %+v, %v, want %+v", w, err, want)
			}
		})
	}
}

// Which bytes are asked for, and how: all of them without a range, by whom they were written if anybody said so.
func TestWhichBytesAreAskedFor(t *testing.T) {
	const text = "0123456789"
	ref := refTo(text)
	by := ref
	by.By = "press"
	for name, c := range map[string]struct {
		ref         makegood.Payload
		offset, n   int64
		part, query string
		want        string
	}{
		"all of it":          {ref, 0, -1, "", "bytes=10", text},
		"all, and so many":   {by, 0, 10, "", "by=press&bytes=10", text},
		"the end":            {ref, 4, -1, "bytes=4-9", "bytes=10", text[4:]},
		"the beginning":      {ref, 0, 3, "bytes=0-2", "bytes=10", text[:3]},
		"something of it":    {ref, 4, 3, "bytes=4-6", "bytes=10", text[4:7]},
		"nothing of it":      {ref, 4, 0, "none", "", ""},
		"what is behind it":  {ref, 10, -1, "none", "", ""},
		"nothing at the top": {ref, 0, 0, "none", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := payloadsAt(t, func(r *http.Request) (*http.Response, error) {
				if c.part == "none" {
					return answers(http.StatusNoContent, "")
				}
				holds(t, r)
				if at := "/below/api/agents/crane/payloads/" + ref.SHA256; r.Method != http.MethodGet || r.URL.Path != at || r.URL.RawQuery != c.query || r.Header.Get("Range") != c.part {
					t.Errorf("asked %s %v %q, want %s of %s", r.Method, r.URL, r.Header.Get("Range"), c.query, c.part)
				}
				answer, err := answers(http.StatusOK, c.want)
				if answer.ContentLength = int64(len(c.want)); c.part != "" {
					answer.StatusCode = http.StatusPartialContent
					answer.Header.Set("Content-Range", strings.Replace(c.part, "=", " ", 1)+"/10")
				}
				return answer, err
			})
			r, err := p.Open(t.Context(), "j", c.ref, c.offset, c.n)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, err := io.ReadAll(r); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// Who reads a payload to its end knows that it is what was written, whichever way the whole of it was asked for.
func TestAWholePayloadIsChecked(t *testing.T) {
	for _, n := range []int64{-1, 4} {
		p := payloadsAt(t, func(*http.Request) (*http.Response, error) {
			answer, err := answers(http.StatusOK, "next")
			answer.ContentLength = 4
			return answer, err
		})
		r, err := p.Open(t.Context(), "j", refTo("text"), 0, n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, payload.ErrAltered) {
			t.Errorf("%d bytes: got %v, want %v", n, err, payload.ErrAltered)
		}
		_ = r.Close()
	}
}

// What an engine says of a payload decides whether it is asked again, and whether another attempt would be told the same.
func TestWhatIsSaidOfAPayload(t *testing.T) {
	const all = maxTransfers
	for name, c := range map[string]struct {
		status      int
		body        string
		tries       int
		final, over bool
	}{
		"busy":                    {status: http.StatusTooManyRequests, tries: all},
		"an error of the engine":  {status: http.StatusInternalServerError, tries: all},
		"none is there":           {status: http.StatusBadGateway, tries: all},
		"another engine's answer": {status: http.StatusNotFound, tries: 1},
		"a wrong token":           {status: http.StatusUnauthorized, tries: 1},
		"it is over":              {status: http.StatusConflict, tries: 1, over: true},
		"final":                   {status: http.StatusUnprocessableEntity, body: `{"error": "no", "final": true}`, tries: 1, final: true},
		"final, and a conflict":   {status: http.StatusConflict, body: `{"error": "no", "final": true}`, tries: 1, final: true},
		"an answer that breaks":   {status: http.StatusCreated, body: `{`, tries: all},
		"the line breaks":         {tries: all},
	} {
		for what, ask := range map[string]func(context.Context, payloads) error{
			"write": func(ctx context.Context, p payloads) error {
				_, err := p.Write(ctx, payload.Place{Job: "j-1"}, strings.NewReader("text"))
				return err
			},
			"read": func(ctx context.Context, p payloads) error {
				_, err := p.Open(ctx, "j-1", refTo("text"), 0, -1)
				return err
			},
		} {
			if what == "read" && c.status == http.StatusCreated {
				continue // that answers no reader
			}
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tries := 0
					err := ask(t.Context(), payloadsAt(t, func(*http.Request) (*http.Response, error) {
						if tries++; c.status == 0 {
							return nil, io.ErrUnexpectedEOF
						}
						return answers(c.status, c.body)
					}))
					if err == nil || tries != c.tries || agent.Failure(err).Retryable == c.final || errors.Is(err, agent.ErrOver) != c.over || !strings.Contains(err.Error(), "payload of job j-1: ") {
						t.Errorf("got %v after %d tries, want %d, final: %v, over: %v", err, tries, c.tries, c.final, c.over)
					}
				})
			})
		}
	}
}

// Where time has run out while it is tried again, that is the error, and nothing is tried any more.
func TestATransferEndsWithItsAttempt(t *testing.T) {
	errTold := errors.New("told to stop")
	for what, ask := range map[string]func(context.Context, payloads) error{
		"write": func(ctx context.Context, p payloads) error {
			_, err := p.Write(ctx, payload.Place{}, strings.NewReader("text"))
			return err
		},
		"read": func(ctx context.Context, p payloads) error {
			_, err := p.Open(ctx, "j", refTo("text"), 0, -1)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 250*time.Millisecond, errTold)
				defer cancel()
				began, tries := time.Now(), 0
				err := ask(ctx, payloadsAt(t, func(*http.Request) (*http.Response, error) {
					tries++
					return nil, &url.Error{Op: "Put", URL: "http://engine", Err: io.ErrUnexpectedEOF}
				}))
				if took := time.Since(began); !errors.Is(err, errTold) || tries != 2 || took != 250*time.Millisecond {
					t.Errorf("got %v after %d tries and %v, want %v after 2 and 250 ms", err, tries, took, errTold)
				}
			})
		})
	}
}

func encoded(t *testing.T, task makegood.Task) json.RawMessage {
	t.Helper()
	body, err := wire.EncodeTask(task)
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(body)
}
