package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

func (b brokenDoor) WritePayload(context.Context, agentdoor.Attempt, string, io.Reader) (makegood.Payload, error) {
	return makegood.Payload{}, b.err
}

func (b brokenDoor) OpenPayload(context.Context, agentdoor.Attempt, makegood.Payload, int64, int64) (io.ReadCloser, error) {
	return nil, b.err
}

// holder is the header that says for which attempt a request is: that of the first task that was given.
func (g given) holder() string {
	t := g.Tasks[0]
	said, err := json.Marshal(agentdoor.Holder{Job: t.Task.Job, Step: t.Task.Step, Attempt: t.Task.Attempt, Token: t.Task.Token, LockedBy: t.LockedBy})
	if err != nil {
		panic(err)
	}
	return agentdoor.HolderHeader + ": " + string(said)
}

// sails submits a job, takes its task as its agent, and returns the header that says so.
func (w *world) sails(id string) string {
	w.t.Helper()
	w.submit("voyage", id, `{}`)
	for {
		var g given
		check(w.t, json.Unmarshal(ask(w.t, "POST", w.url+"/api/agents/pilot/tasks", `{"instance":"p-1","wait":20}`).body, &g))
		if len(g.Tasks) == 0 {
			w.t.Fatalf("there is no task of %s", id)
		}
		if g.Tasks[0].Task.Job == id {
			return g.holder()
		}
	}
}

// talkOfAgentPayloads talks to an engine about payloads of an attempt, and to what has no store or a broken one.
func talkOfAgentPayloads(w *world, talk func(string, conversation) reply) {
	holds := w.sails("sails-2")
	_, err := w.client.WritePayload(w.t.Context(), "sails-2", "", strings.NewReader("text"))
	check(w.t, err)
	over := strings.Replace(holds, `"attempt":1`, `"attempt":2`, 1)
	on := func(err error) string {
		return listen(w.t, httpapi.Config{Jobs: bare(w.engine), Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler), Outside: brokenDoor{err}})
	}
	elsewhere := listen(w.t, httpapi.Config{Jobs: bare(w.engine), Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler), Outside: w.engine.Door(), Door: httpapi.Read})
	put := func(agent, header string, status int) conversation {
		return conversation{"PUT", "/api/agents/{agent}/payloads", "/api/agents/" + agent + "/payloads", "text", header, status}
	}
	get := func(agent, header string, status int) conversation {
		return conversation{"GET", "/api/agents/{agent}/payloads/{sha256}", "/api/agents/" + agent + "/payloads/" + textHash + "?bytes=4", "", header, status}
	}
	for _, c := range []struct {
		at string
		conversation
		final bool
	}{
		{w.url, put("pilot", holds, 201), false},
		{w.url, put("pilot", "", 400), true},
		{w.url, put("guarded", holds, 401), false},
		{elsewhere, put("pilot", holds, 403), false},
		{w.url, put("nobody", holds, 404), false},
		{w.url, put("pilot", over, 409), false},
		{on(payload.ErrTooLarge), put("pilot", holds, 413), true},
		{on(payload.ErrNone), put("pilot", holds, 404), true},
		{on(payload.ErrDenied), put("pilot", holds, 500), true},
		{on(errSecret), put("pilot", holds, 503), false},
		{on(agentdoor.ErrUploads), put("pilot", holds, 429), false},
		{w.url, get("pilot", holds, 200), false},
		{w.url, get("pilot", agentdoor.HolderHeader+`: {"job":"sails-2"}`, 400), true},
		{w.url, get("pilot", agentdoor.HolderHeader+`: {"jobs":"sails-2"}`, 400), true},
		{w.url, get("guarded", holds, 401), false},
		{elsewhere, get("pilot", holds, 403), false},
		{w.url, get("nobody", holds, 404), false},
		{on(payload.ErrNotFound), get("pilot", holds, 404), true},
		{w.url, get("pilot", over, 409), false},
		{on(payload.ErrAltered), get("pilot", holds, 500), true},
		{on(errSecret), get("pilot", holds, 503), false},
	} {
		r := talk(c.at, c.conversation)
		if r.status >= 400 && r.problem(w.t).Final != c.final {
			w.t.Errorf("%s %s: got %s, want that it is final: %v", c.method, c.path, r.body, c.final)
		}
		talk(w.url, with(c.conversation, "Host: evil.example", http.StatusMisdirectedRequest))
	}
	// A part, for which a request has two headers.
	for part, status := range map[string]int{"bytes=1-2": 206, "bytes=4-": 416} {
		talk(w.url, get("pilot", holds+"\nRange: "+part, status))
	}
}

// payloads writes and reads payloads as an agent does.
type payloads struct {
	*outside
	agent, token, holder string
}

func (p payloads) do(method, path, body string, headers ...string) reply {
	p.t.Helper()
	return ask(p.t, method, p.url+"/api/agents/"+p.agent+"/payloads"+path, body, append(headers, p.holder, "Authorization: Bearer "+p.token)...)
}

func (p payloads) write(body string, status int) (ref makegood.Payload) {
	p.t.Helper()
	r := p.do("PUT", "", body, "Content-Type: text/plain")
	if r.status != status {
		p.t.Errorf("agent %s, %s, writes: got %d %s, want %d", p.agent, p.holder, r.status, r.body, status)
	}
	if status == http.StatusCreated {
		check(p.t, json.Unmarshal(r.body, &ref))
	}
	return ref
}

func (p payloads) read(ref makegood.Payload, status int) string {
	p.t.Helper()
	r := p.do("GET", fmt.Sprintf("/%s?bytes=%d&by=%s", ref.SHA256, ref.Bytes, ref.By), "")
	if r.status != status {
		p.t.Errorf("agent %s, %s, reads: got %d %s, want %d", p.agent, p.holder, r.status, r.body, status)
	}
	return string(r.body)
}

// Who holds an attempt reads what its job has, and writes under its own name; nobody else does, and not for longer. Whoever
// guesses a hash, another job, another agent's name or another's claim finds nothing.
func TestOnlyWhoHoldsAnAttemptReadsAndWritesPayloadsOfItsJob(t *testing.T) {
	w := newOutside(t)
	for _, id := range []string{"f-1", "f-2"} {
		w.submit(id)
	}
	both := w.take("harbour", "", `{"instance":"h-1","max":10,"wait":20}`)
	for len(both.Tasks) < 2 {
		both.Tasks = append(both.Tasks, w.take("harbour", "", `{"instance":"h-1","max":1,"wait":20}`).Tasks...)
	}
	one, two := given{Tasks: both.Tasks[:1]}, given{Tasks: both.Tasks[1:]}
	mine, theirs := payloads{w, "harbour", "", one.holder()}, payloads{w, "harbour", "", two.holder()}
	ref := mine.write("crates", http.StatusCreated)
	if want := (makegood.Payload{SHA256: ref.SHA256, Bytes: 6, Type: "text/plain", By: "harbour"}); ref != want || len(ref.SHA256) != 64 {
		t.Errorf("got %+v", ref)
	}
	if got := mine.read(ref, http.StatusOK); got != "crates" {
		t.Errorf("got %q", got)
	}
	theirs.read(ref, http.StatusNotFound) // another job
	forged := ref
	forged.By = ""
	mine.read(forged, http.StatusNotFound) // another writer
	for what, holder := range map[string]string{
		"a token that is made up":   strings.Replace(mine.holder, one.Tasks[0].Task.Token, "1.AAAA", 1),
		"the token of another job":  strings.Replace(mine.holder, one.Tasks[0].Task.Token, two.Tasks[0].Task.Token, 1),
		"the claim of another job":  strings.Replace(mine.holder, one.Tasks[0].LockedBy, two.Tasks[0].LockedBy, 1),
		"the claim of nobody":       strings.Replace(mine.holder, one.Tasks[0].LockedBy, "", 1),
		"another attempt":           strings.Replace(mine.holder, `"attempt":1`, `"attempt":2`, 1),
		"a job that is not there":   strings.Replace(mine.holder, `"job":"`+one.Tasks[0].Task.Job+`"`, `"job":"f-3"`, 1),
		"another step of this job":  strings.Replace(mine.holder, `"step":"load"`, `"step":"count"`, 1),
		"a step that is not in it":  strings.Replace(mine.holder, `"step":"load"`, `"step":"fly"`, 1),
		"the name of another agent": mine.holder,
	} {
		stranger := payloads{w, "harbour", "", holder}
		if what == "the name of another agent" {
			stranger.agent, stranger.token = "clerk", clerkToken
		}
		t.Log(what)
		stranger.write("x", http.StatusConflict)
		stranger.read(ref, http.StatusConflict)
	}
	payloads{w, "clerk", "wrong", mine.holder}.write("x", http.StatusUnauthorized)
	// Nobody wants the result any more, and the attempt still stands.
	_, err := w.client.Request(t.Context(), one.Tasks[0].Task.Job, api.Request{Verb: makegood.VerbCancel})
	check(t, err)
	mine.read(ref, http.StatusOK)
	// It has ended.
	if got := w.reply("harbour", "", one, `"type":"StepSucceeded","output":{"crates":3}`); got != "applied" {
		t.Errorf("got %s", got)
	}
	mine.write("x", http.StatusConflict)
	mine.read(ref, http.StatusConflict)
}

// A shared task has no claim: its token is what its agent is known by, as with its reply. What a step before has written it reads.
func TestASharedTaskReadsAndWritesPayloads(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	ref := payloads{w, "harbour", "", g.holder()}.write("crates", http.StatusCreated)
	text, err := json.Marshal(ref)
	check(t, err)
	if got := w.reply("harbour", "", g, `"type":"StepSucceeded","output":`+string(text)); got != "applied" {
		t.Fatalf("got %s", got)
	}
	shared := w.take("clerk", clerkToken, `{"instance":"c-1","wait":20}`)
	clerk := payloads{w, "clerk", clerkToken, shared.holder()}
	if got := clerk.read(ref, http.StatusOK); got != "crates" {
		t.Errorf("got %q", got)
	}
	if got := clerk.write("counted", http.StatusCreated); got.By != "clerk" {
		t.Errorf("got %+v", got)
	}
	if got := w.reply("clerk", clerkToken, shared, `"type":"StepSucceeded"`); got != "applied" {
		t.Fatalf("got %s", got)
	}
	clerk.write("x", http.StatusConflict)
}

// gate is a body that goes on when it is told to.
type gate struct {
	io.Reader
	reached, open chan struct{}
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if err == io.EOF {
		close(g.reached)
		<-g.open
	}
	return n, err
}

// An attempt that ends while its agent sends a payload has written nothing, whatever was sent.
func TestWhatComesToItsEndAfterItsAttemptIsNotStored(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	body := &gate{bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20)), make(chan struct{}), make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+"/api/agents/harbour/payloads", body)
	check(t, err)
	name, value, _ := strings.Cut(g.holder(), ": ")
	r.Header.Set(name, value)
	answered := make(chan int, 1)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = answer.Body.Close()
		answered <- answer.StatusCode
	}()
	<-body.reached
	if got := w.reply("harbour", "", g, `"type":"StepSucceeded"`); got != "applied" {
		t.Fatalf("got %s", got)
	}
	close(body.open)
	if status := <-answered; status != http.StatusConflict {
		t.Errorf("got %d, want %d", status, http.StatusConflict)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(bytes.Repeat([]byte("x"), 1<<20)))
	if _, err = w.client.OpenPayload(t.Context(), "f-1", makegood.Payload{SHA256: hash, Bytes: 1 << 20, By: "harbour"}); !errors.Is(err, api.ErrNoPayload) {
		t.Errorf("got %v, want %v", err, api.ErrNoPayload)
	}
}

// Who goes on sending for an attempt that has ended is stopped long before the end.
func TestAnEndedAttemptFillsNoDisk(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	sent := &counting{}
	ended, begun := make(chan struct{}), sync.OnceFunc(func() {
		if got := w.reply("harbour", "", g, `"type":"StepSucceeded"`); got != "applied" {
			t.Errorf("got %s", got)
		}
	})
	body := io.LimitReader(readerFunc(func(p []byte) (int, error) {
		begun()
		return sent.Read(p)
	}), 90<<20)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+"/api/agents/harbour/payloads", body)
	check(t, err)
	name, value, _ := strings.Cut(g.holder(), ": ")
	r.Header.Set(name, value)
	go func() {
		defer close(ended)
		if answer, err := http.DefaultClient.Do(r); err == nil { // Or the connection ends first.
			check(t, answer.Body.Close())
		}
	}()
	<-ended
	begun() // It returns when the reply has its answer, which may come after that of the sender.
	if got := sent.n.Load(); got > 20<<20 {
		t.Errorf("%d bytes were taken for an attempt that had ended", got)
	}
}

// readerFunc is a function that reads.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// As many payloads as an agent may write at once are written, and one more is told to come later; others are not held up.
func TestAnAgentWritesSoManyPayloadsAtOnce(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	mine := payloads{w, "harbour", "", w.take("harbour", "", `{"instance":"h-1","wait":20}`).holder()}
	name, value, _ := strings.Cut(mine.holder, ": ")
	var ends []*io.PipeWriter
	answers := make(chan int, limits.MaxUploads+1)
	for range limits.MaxUploads + 1 { // None ends before it may, so one is too many, whichever comes last.
		body, end := io.Pipe()
		ends = append(ends, end)
		r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+"/api/agents/harbour/payloads", body)
		check(t, err)
		r.Header.Set(name, value)
		go func() {
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				answers <- 0
				return
			}
			_ = answer.Body.Close()
			answers <- answer.StatusCode
		}()
	}
	if status := <-answers; status != http.StatusTooManyRequests {
		t.Errorf("got %d, want one to be told to come later", status)
	}
	_, err := w.client.WritePayload(t.Context(), "f-1", "", strings.NewReader("of a person"))
	check(t, err)
	for _, end := range ends {
		check(t, end.Close())
	}
	for range limits.MaxUploads {
		if status := <-answers; status != http.StatusCreated {
			t.Errorf("got %d, want %d", status, http.StatusCreated)
		}
	}
	mine.write("after it", http.StatusCreated)
}

// A body that breaks off is its sender's trouble, and none of the store's; nothing is stored, and it may come again.
func TestABodyThatBreaksOffIsToldSo(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	holder := w.take("harbour", "", `{"instance":"h-1","wait":20}`).holder()
	host := strings.TrimPrefix(w.url, "http://")
	for _, at := range []string{"/api/agents/harbour/payloads", "/api/jobs/f-1/payloads"} {
		line, err := net.Dial("tcp", host)
		check(t, err)
		_, err = fmt.Fprintf(line, "PUT %s HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf", at, host, holder)
		check(t, errors.Join(err, line.(*net.TCPConn).CloseWrite()))
		text, err := io.ReadAll(line)
		check(t, errors.Join(err, line.Close()))
		if !strings.HasPrefix(string(text), "HTTP/1.1 400") || !strings.Contains(string(text), "broke off") || strings.Contains(string(text), "final") {
			t.Errorf("%s: got %s", at, text)
		}
	}
}

// Which of two attempts is meant nobody guesses.
func TestARequestIsForOneAttempt(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	holder := w.take("harbour", "", `{"instance":"h-1","wait":20}`).holder()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+"/api/agents/harbour/payloads", strings.NewReader("x"))
	check(t, err)
	name, value, _ := strings.Cut(holder, ": ")
	r.Header[name] = []string{value, value}
	answer, err := http.DefaultClient.Do(r)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d, want %d", answer.StatusCode, http.StatusBadRequest)
	}
}

// What is too large is refused unread where it is said, and as soon as it is read where it is not.
func TestAnAgentCannotWriteTooMuch(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	name, value, _ := strings.Cut(g.holder(), ": ")
	for _, length := range []int64{makegood.MaxLargePayloadBytes + 1, -1} {
		body := &counting{}
		r, err := http.NewRequestWithContext(t.Context(), "PUT", w.url+"/api/agents/harbour/payloads", io.LimitReader(body, 1<<30))
		check(t, err)
		r.ContentLength = length
		r.Header.Set(name, value)
		r.Header.Set("Expect", "100-continue")
		answer, err := http.DefaultClient.Do(r)
		if length > 0 {
			check(t, err) // Whoever goes on sending may see the connection end before the answer.
		}
		if err == nil {
			text, err := io.ReadAll(answer.Body)
			check(t, errors.Join(err, answer.Body.Close()))
			if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), `"final":true`) || !strings.Contains(string(text), "104857600") {
				t.Errorf("got %d %s", answer.StatusCode, text)
			}
		}
		if most := int64(makegood.MaxLargePayloadBytes + 16<<20); length > 0 && body.n.Load() > 0 || body.n.Load() > most {
			t.Errorf("of a body said to have %d bytes, %d were sent", length, body.n.Load())
		}
	}
}

// counting counts the nulls that it gives.
type counting struct{ n atomic.Int64 }

func (c *counting) Read(p []byte) (int, error) {
	clear(p)
	c.n.Add(int64(len(p)))
	return len(p), nil
}
