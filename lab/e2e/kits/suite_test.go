//go:build kits

package kits_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each kit runs the same agent, and an engine that does what engines and networks do sees the same of each.
func TestAllKitsBehaveTheSame(t *testing.T) {
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			e.asked = []fault{{status: http.StatusServiceUnavailable}, {cut: true}, {status: http.StatusTooManyRequests}, {status: http.StatusUnauthorized}}
			l.run(t, "MAKEGOOD_URL="+e.server.URL, "MAKEGOOD_TOKEN=s3cret", "MAKEGOOD_SECRET_CHAT_TOKEN=hush-hush")
			for _, b := range slices.Concat(behaviours, payloadBehaviours) {
				t.Run(strings.ReplaceAll(b.rule, " ", "_"), func(t *testing.T) {
					t.Parallel()
					b.shows(t, e)
				})
			}
		})
		t.Run(l.name+" stops", func(t *testing.T) {
			t.Parallel()
			stops(t, l)
		})
		t.Run(l.name+" takes no more than it can", func(t *testing.T) {
			t.Parallel()
			crowded(t, l)
		})
		t.Run(l.name+" says little of a short outage", func(t *testing.T) {
			t.Parallel()
			quiet(t, l)
		})
		t.Run(l.name+" takes 64 where nothing is said", func(t *testing.T) {
			t.Parallel()
			unlimited(t, l)
		})
	}
}

// behaviour is what every kit does.
type behaviour struct {
	rule  string
	shows func(t *testing.T, e *engine)
}

var behaviours = []behaviour{
	{"a task is done, and its reply says which", func(t *testing.T, e *engine) {
		e.give(task("j1", "echo", message{"text": "ü 😀 \u2028 <&>"}))
		wants(t, e.answer("j1"), message{
			"v": 1.0, "type": "StepSucceeded", "job": "j1", "step": "s", "attempt": 2.0, "token": "1.J1", "lockedBy": lockedBy("j1"),
			"startedAt": "2026-11-20T10:00:01Z", "output": message{"text": "ü 😀 \u2028 <&>"},
		})
	}},
	{"what shows who it is, and goes on when it is refused", func(t *testing.T, e *engine) {
		e.until("five requests for tasks", func() bool { return len(e.asks) >= 5 })
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, a := range e.asks {
			if a.authorization != "Bearer s3cret" {
				t.Errorf("a request for tasks showed %q", a.authorization)
			}
		}
	}},
	{"an action knows its attempt", func(t *testing.T, e *engine) {
		e.give(task("i1", "info", nil, message{"round": 3}))
		wants(t, e.answer("i1")["output"], message{
			"job": "i1", "workflow": "suite", "step": "s", "round": 3.0, "attempt": 2.0, "key": "i1/s/1", "completion": "c.i1", "shared": false,
			"traceparent": "",
		})
		theirs := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		e.give(task("i2", "info", nil, message{"traceparent": theirs}))
		if output, _ := e.answer("i2")["output"].(map[string]any); output["traceparent"] != theirs {
			t.Errorf("got the span %v, want %s", output["traceparent"], theirs)
		}
	}},
	{"an action that it does not have is refused, and had no effect", func(t *testing.T, e *engine) {
		e.give(task("u1", "nosuch", nil))
		failed(t, e.answer("u1"), false, "no", 0, "nosuch", "echo")
	}},
	{"an input that cannot be read is refused, and had no effect", func(t *testing.T, e *engine) {
		e.give(task("p1", "parsed", message{}), task("p2", "parsed", message{"must": 7}))
		failed(t, e.answer("p1"), false, "no", 0, "input", "must")
		wants(t, e.answer("p2")["output"], 7.0)
	}},
	{"an undo cannot be a step of its own", func(t *testing.T, e *engine) {
		e.give(task("n1", "unecho", message{}))
		failed(t, e.answer("n1"), false, "no", 0, "undoes")
	}},
	{"an undo is told what it undoes", func(t *testing.T, e *engine) {
		undo := func(outcome string, output any) message {
			return message{"undo": message{"forwardKey": "f/s/1", "outcome": outcome, "output": output}}
		}
		e.give(
			task("n2", "unecho", message{}, undo("done", message{"a": 1})), task("n3", "unecho", message{}, undo("unknown", nil)),
			task("n6", "unecho", message{"keys": true}, undo("done", 1)), task("n7", "unecho", message{"keys": true}, func() message {
				repeated := undo("done", 1)
				repeated["undo"].(message)["repeats"] = 2
				return repeated
			}()),
			task("n4", "unecho", message{"quiet": true}, undo("done", 1)), task("n5", "echo", message{"b": 2}, undo("done", 1)),
		)
		failed(t, e.answer("n2"), false, "unknown", 0, `{"done":{"a":1},"forwardKey":"f/s/1","outcome":"done"}`)
		failed(t, e.answer("n3"), false, "unknown", 0, `{"done":null,"forwardKey":"f/s/1","outcome":"unknown"}`)
		failed(t, e.answer("n6"), false, "unknown", 0, `["f/s/1"]`)
		failed(t, e.answer("n7"), false, "unknown", 0, `["f/s/1/3","f/s/1/2","f/s/1"]`)
		wants(t, e.answer("n4")["type"], "StepSucceeded")
		wants(t, e.answer("n4")["output"], nil)
		wants(t, e.answer("n5")["output"], message{"b": 2.0})
	}},
	{"the items of a batch are done one after the other, each under its key", func(t *testing.T, e *engine) {
		undo := message{"forwardKey": "f/s/1", "outcome": "unknown", "output": []any{message{"item": 4, "output": message{"a": 1}}}}
		e.give(
			task("many1", "info", []any{nil, nil}, message{"batch": []any{3, 7}}),
			task("many2", "fail", []any{message{"message": "m1"}, message{"message": "m2", "final": true}}, message{"batch": []any{0, 1}}),
			task("many3", "unecho", []any{message{}, message{}}, message{"batch": []any{4, 5}, "undo": undo}),
			task("many4", "echo", message{}, message{"batch": []any{0}}),
		)
		wants(t, answerFor(t, e, "many1", 0)["item"], 3.0)
		for i, key := range []string{"many1/s/1/3", "many1/s/1/7"} {
			output, _ := answerFor(t, e, "many1", i)["output"].(map[string]any)
			wants(t, output["key"], key)
		}
		failed(t, answerFor(t, e, "many2", 0), true, "unknown", 0, "m1")
		failed(t, answerFor(t, e, "many2", 1), false, "unknown", 0, "m2")
		failed(t, answerFor(t, e, "many3", 0), false, "unknown", 0, `{"done":{"a":1},"forwardKey":"f/s/1/4","outcome":"done"}`)
		failed(t, answerFor(t, e, "many3", 1), false, "unknown", 0, `{"done":null,"forwardKey":"f/s/1/5","outcome":"unknown"}`)
		failed(t, e.answer("many4"), false, "no", 0, "no list of so many")
	}},
	{"a failure says what is known of it", func(t *testing.T, e *engine) {
		e.give(
			task("f1", "fail", message{"message": "m1"}), task("f2", "fail", message{"message": "m2", "final": true}),
			task("f3", "fail", message{"message": "m3", "notApplied": true, "retryAfterMs": 2500}),
			task("f4", "fail", message{"message": "m4", "final": true, "notApplied": true}),
			task("f5", "crash", nil), task("f6", "fail", message{"message": strings.Repeat("ü", 2000)}),
		)
		e.give(task("f7", "fail", message{"message": "m7", "kind": "card_declined"}), task("f8", "fail", message{"message": "m8", "kind": "No Kind!"}))
		wants(t, e.answer("f7")["error"].(message)["kind"], "card_declined")
		wants(t, e.answer("f8")["error"].(message)["kind"], nil)
		failed(t, e.answer("f1"), true, "unknown", 0, "m1")
		failed(t, e.answer("f2"), false, "unknown", 0, "m2")
		failed(t, e.answer("f3"), true, "no", 2500, "m3")
		failed(t, e.answer("f4"), false, "no", 0, "m4")
		failed(t, e.answer("f5"), true, "unknown", 0, "it broke")
		failed(t, e.answer("f6"), true, "unknown", 0, "...")
		if text := e.answer("f6")["error"].(message)["message"].(string); len(text) > 1024 || strings.Contains(text, "\uFFFD") {
			t.Errorf("a long message has %d bytes", len(text))
		}
	}},
	{"a service that wants no calls for a while has all of the agent wait", func(t *testing.T, e *engine) {
		slowed := message{"message": "429", "ms": 2500, "times": 9}
		e.give(task("slow1", "slowDown", slowed), task("slow2", "slowDown", []any{slowed, slowed}, message{"batch": []any{0, 1}}))
		e.give(task("slow3", "fail", message{"message": "m", "retryAfterMs": 2500}), task("slow4", "slowDown", message{"times": 0}))
		for _, reply := range []message{e.answer("slow1"), answerFor(t, e, "slow2", 0), answerFor(t, e, "slow2", 1)} {
			slowedDown(t, reply)
		}
		failed(t, e.answer("slow3"), true, "unknown", 2500, "m")
		wants(t, e.answer("slow3")["error"].(message)["slowDown"], nil) // That attempt waits alone.
		wants(t, e.answer("slow4")["output"], "taken")
	}},
	{"a mistake of the program is a panic with its line", func(t *testing.T, e *engine) {
		for i, how := range []string{"none", "name", "deep", "library", "long"} {
			job := fmt.Sprint("m", i)
			e.give(task(job, "err", message{"how": how}))
			reply := e.answer(job)
			failed(t, reply, true, "unknown", 0)
			failure := reply["error"].(message)
			wants(t, failure["kind"], "panic")
			if text := failure["message"].(string); len(text) > 1024 || !regexp.MustCompile(` \(at [^/ ]+/(probe\.py|probe\.mjs|main\.go):[1-9]\d*\)$`).MatchString(text) {
				t.Errorf("%s: got %q, want at most 1024 bytes with the line in the agent's own file", how, text)
			}
		}
	}},
	{"what a program calls, and what it says on purpose, is no mistake", func(t *testing.T, e *engine) {
		for i, how := range []string{"nobody", "no JSON", "declined"} {
			job := fmt.Sprint("x", i)
			e.give(task(job, "err", message{"how": how}))
			reply := e.answer(job)
			failed(t, reply, true, "unknown", 0)
			wants(t, reply["error"].(message)["kind"], nil)
		}
	}},
	{"a step can be left to wait", func(t *testing.T, e *engine) {
		e.give(task("w1", "later", message{"deadline": "2027-01-31T09:00:00Z"}))
		reply := e.answer("w1")
		wants(t, reply["type"], "StepWaiting")
		if deadline, _ := reply["deadline"].(string); !strings.HasPrefix(deadline, "2027-01-31T09:00:00") || !strings.HasSuffix(deadline, "Z") {
			t.Errorf("got the deadline %q", deadline)
		}
	}},
	{"an output that cannot be kept is a final failure", func(t *testing.T, e *engine) {
		e.happen(func() {
			e.carrying["l2"] = []fault{{status: http.StatusInternalServerError, final: true, after: 1 << 30}}
		})
		e.give(task("l2", "large", message{"bytes": 256<<10 - 1}), task("l3", "unsayable", nil))
		failed(t, e.answer("l2"), false, "unknown", 0, "the output of 262145 bytes cannot be kept", "as scripted")
		failed(t, e.answer("l3"), false, "unknown", 0, "JSON")
	}},
	{"a heartbeat gives more time", func(t *testing.T, e *engine) {
		e.give(task("h1", "heartbeat", message{"times": 5, "ms": 1500}, message{"timeoutMs": 6000}))
		wants(t, e.answer("h1")["output"], message{"failed": 0.0})
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, m := range e.heartbeats["h1"] {
			delete(m, "progress")
			wants(t, m, message{"job": "h1", "step": "s", "attempt": 2.0, "token": "1.H1", "lockedBy": lockedBy("h1")})
		}
		wants(t, len(e.heartbeats["h1"]), 5)
	}},
	{"progress is reported with a heartbeat, and is small", func(t *testing.T, e *engine) {
		e.give(task("g1", "report", message{"progress": message{"page": 3}}), task("g2", "report", message{"progress": strings.Repeat("x", 511)}))
		wants(t, e.answer("g1")["output"], "reported")
		failed(t, e.answer("g2"), false, "unknown", 0, "513", "512")
		e.mu.Lock()
		defer e.mu.Unlock()
		wants(t, len(e.heartbeats["g1"]), 1)
		wants(t, e.heartbeats["g1"][0]["progress"], message{"page": 3.0})
	}},
	{"a heartbeat that nobody answers is said again until it is taken", func(t *testing.T, e *engine) {
		e.happen(func() { e.answers["h2"] = []string{"error", "cut", "error", "held", "error"} })
		e.give(task("h2", "heartbeat", message{"times": 2, "ms": 300}, message{"timeoutMs": 20_000}))
		wants(t, e.answer("h2")["output"], message{"failed": 0.0})
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.heartbeats["h2"]); n < 6 {
			t.Errorf("got %d heartbeats, want two that are taken, and four that are not", n)
		}
	}},
	{"a heartbeat that nobody answers in time ends the work", func(t *testing.T, e *engine) {
		e.happen(func() { e.answers["h6"] = slices.Repeat([]string{"error"}, 1000) })
		e.give(task("h6", "heartbeat", message{"times": 1, "ms": 1}, message{"timeoutMs": 20_000}))
		failed(t, e.answer("h6"), true, "unknown", 0, "out of time")
	}},
	{"work that blocks is kept alive", func(t *testing.T, e *engine) {
		e.happen(func() { e.answers["b1"], e.answers["b2"] = []string{"error", "cut"}, []string{"held", "withdrawn"} })
		e.give(task("b1", "block", message{"ms": 7000}, message{"timeoutMs": 4000}), task("b2", "block", message{"ms": 5000}, message{"timeoutMs": 3000}))
		wants(t, e.answer("b1")["output"], "blocked")
		wants(t, e.answer("b2")["output"], "blocked")
		e.mu.Lock()
		n := len(e.heartbeats["b1"])
		e.mu.Unlock()
		if n < 4 {
			t.Errorf("got %d heartbeats in seven seconds, of work that may be silent for four, want a third of that between two", n)
		}
		// It is kept alive no longer than it blocks.
		e.give(task("b1-witness", "sleep", message{"ms": slept}))
		e.answer("b1-witness")
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.heartbeats["b1"]) > n+1 {
			t.Errorf("got %d heartbeats after it had ended", len(e.heartbeats["b1"])-n)
		}
	}},
	{"where a step heartbeats, most of them are not sent", func(t *testing.T, e *engine) {
		e.give(task("h3", "heartbeat", message{"times": 50, "ms": 10}, message{"timeoutMs": 20_000, "totalMs": 60_000}))
		wants(t, e.answer("h3")["output"], message{"failed": 0.0})
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.heartbeats["h3"]); n > 2 {
			t.Errorf("got %d heartbeats for 50 calls in half a second, of a step that may be silent for 20 s", n)
		}
	}},
	{"who is told that nobody wants the result may still say what became of it", func(t *testing.T, e *engine) {
		e.happen(func() { e.answers["h4"] = []string{"held", "withdrawn"} })
		e.give(task("h4", "heartbeat", message{"times": 100, "ms": 50}))
		failed(t, e.answer("h4"), true, "no", 0, "withdrawn")
	}},
	{"who is told that it is over says nothing", func(t *testing.T, e *engine) {
		e.happen(func() { e.answers["h5"] = []string{"over"} })
		e.give(task("h5", "heartbeat", message{"times": 1, "ms": 10}), task("h5-witness", "sleep", message{"ms": slept}))
		e.answer("h5-witness")
		silent(t, e, "h5")
	}},
	{"work stops a little before its time, while it may be said", func(t *testing.T, e *engine) {
		e.give(task("t1", "sleep", message{"ms": 60_000}, message{"timeoutMs": 20_000}))
		failed(t, e.answer("t1"), true, "unknown", 0, "out of time")
	}},
	{"who does not stop in time says nothing", func(t *testing.T, e *engine) {
		e.give(task("t2", "deaf", message{"ms": 1000}, message{"timeoutMs": 500}), task("t2-witness", "sleep", message{"ms": slept}))
		e.answer("t2-witness")
		silent(t, e, "t2")
	}},
	{"an answer that was long on its way counts against the time", func(t *testing.T, e *engine) {
		late := task("t3", "echo", 1, message{"timeoutMs": 1000})
		late.answer = 1500 * 1_000_000
		e.give(late)
		e.give(task("t3-witness", "sleep", message{"ms": slept}))
		e.answer("t3-witness")
		silent(t, e, "t3")
	}},
	{"a task whose answer was cut off is asked for again, and done once", func(t *testing.T, e *engine) {
		cut := task("c1", "echo", 1)
		cut.cut = true
		e.give(cut)
		wants(t, e.answer("c1")["output"], 1.0)
		e.give(task("c1-witness", "sleep", message{"ms": 100}))
		e.answer("c1-witness")
		wants(t, e.count("c1"), 1)
	}},
	{"a reply is said again until it is taken", func(t *testing.T, e *engine) {
		e.happen(func() {
			e.replies["r1"] = []fault{{cut: true}, {status: http.StatusServiceUnavailable}, {status: http.StatusInternalServerError}}
			e.replies["r2"] = []fault{{cut: true, heeded: true}}
		})
		e.give(task("r1", "echo", 1), task("r2", "echo", 2))
		wants(t, e.answer("r1")["output"], 1.0)
		e.until("the reply of r2, twice", func() bool { return len(e.said["r2"]) == 2 })
		e.mu.Lock()
		defer e.mu.Unlock()
		wants(t, e.said["r2"][1], e.said["r2"][0])
	}},
	{"a reply that nobody takes in time is given up", func(t *testing.T, e *engine) {
		e.happen(func() {
			for range 1000 {
				e.replies["r3"] = append(e.replies["r3"], fault{status: http.StatusServiceUnavailable})
			}
		})
		e.give(task("r3", "echo", 1, message{"timeoutMs": 2500}), task("r3-witness", "sleep", message{"ms": 2 * slept}))
		e.answer("r3-witness")
		e.mu.Lock()
		tried := e.tried["r3"]
		e.mu.Unlock()
		e.give(task("r3-witness-2", "sleep", message{"ms": slept}))
		e.answer("r3-witness-2")
		e.mu.Lock()
		defer e.mu.Unlock()
		if tried == 0 || e.tried["r3"] != tried {
			t.Errorf("tried %d times within its time, and %d after", tried, e.tried["r3"]-tried)
		}
	}},
	{"a reply that is refused for good becomes a failure that says so", func(t *testing.T, e *engine) {
		e.happen(func() { e.replies["r4"] = []fault{{status: http.StatusRequestEntityTooLarge}} })
		e.give(task("r4", "echo", 1))
		failed(t, e.answer("r4"), false, "unknown", 0, "the reply cannot be sent", "as scripted")
	}},
	{"a task that only a newer release understands is left alone, and its neighbours are done", func(t *testing.T, e *engine) {
		e.give(
			task("v1", "echo", 1, message{"v": 2}), task("v2", "echo", 1, message{"type": "TaskOfLater"}), task("v3", "echo", 1, message{"timeoutMs": "soon"}),
			task("v4", "echo", 4),
		)
		wants(t, e.answer("v4")["output"], 4.0)
		for _, job := range []string{"v1", "v2", "v3"} {
			silent(t, e, job)
		}
	}},
	{"nobody claims a shared task", func(t *testing.T, e *engine) {
		shared := message{"exclusive": false, "completeBy": "2026-11-20T10:10:00Z"}
		e.give(task("s1", "echo", 1, shared), task("s2", "heartbeat", message{"times": 1, "ms": 1}, shared))
		if _, claimed := e.answer("s1")["lockedBy"]; claimed {
			t.Errorf("got %v, want no lockedBy", e.answer("s1"))
		}
		wants(t, e.answer("s2")["output"], message{"failed": 1.0})
	}},
	{"a secret is put in, and never said", func(t *testing.T, e *engine) {
		asks := func(name string) message {
			return message{"type": "SecretTask", "secrets": []message{{"path": "/headers/Authori~1zation", "at": 8, "name": name}}}
		}
		input := message{"headers": message{"Authori/zation": "Bearer 😀; x"}}
		e.give(task("k1", "echo", input, asks("chat_token")), task("k2", "echo", input, asks("nosuch")))
		wants(t, e.answer("k1")["output"], message{"headers": message{"Authori/zation": "Bearer 😀[secret chat_token]; x"}})
		failed(t, e.answer("k2"), false, "no", 0, "secret", "nosuch")
	}},
}

// silent checks that nothing was said of a job, to whoever might have listened.
func silent(t *testing.T, e *engine, job string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.said[job]) > 0 || e.tried[job] > 0 {
		t.Errorf("got %v, want not a word", e.said[job])
	}
}

// stops: told to end, an agent takes no more, ends what it has, and what was on its way to it, and exits well.
func stops(t *testing.T, l language) {
	e := newEngine(t)
	p := l.run(t, "MAKEGOOD_URL="+e.server.URL)
	e.give(task("a", "sleep", message{"ms": 2000}))
	e.until("it has taken the task, and asks for more", func() bool { return len(e.waiting) == 0 && e.polling == 1 && len(e.asks) > 1 })
	p.tell()
	e.until("it waits for tasks no more", func() bool { return e.polling == 0 })
	if err := p.ends(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	wants(t, e.answer("a")["output"], "slept")
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := e.asks[len(e.asks)-1]; len(e.asks) > 2 && last.Wait != 0 {
		t.Errorf("after it was told to end it asked for %+v", last)
	}
}

// crowded: an agent never has more than it can run at once.
func crowded(t *testing.T, l language) {
	e := newEngine(t)
	l.run(t, "MAKEGOOD_URL="+e.server.URL, "CONCURRENCY=2")
	for _, job := range []string{"a", "b", "c", "d", "e"} {
		e.give(task(job, "sleep", message{"ms": 300}))
	}
	for _, job := range []string{"a", "b", "c", "d", "e"} {
		e.answer(job)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.asks {
		if a.Max > 2 {
			t.Errorf("it asked for %d tasks, and can run 2", a.Max)
		}
	}
}

// unlimited: an agent of which nothing is said runs 64 attempts at once, as an engine does, and asks for no more.
func unlimited(t *testing.T, l language) {
	e := newEngine(t)
	l.run(t, "MAKEGOOD_URL="+e.server.URL, "CONCURRENCY=0")
	for i := range 70 {
		e.give(task(fmt.Sprint("u", i), "sleep", message{"ms": 10_000}))
	}
	e.until("it has 64, and asks for none", func() bool { return len(e.waiting) == 6 && e.polling == 0 })
	wants(t, e.answer("u0")["output"], "slept")
	e.until("the rest is taken when there is room", func() bool { return len(e.waiting) == 0 })
}

// quiet: an agent says that it is ready, and of a short outage one thing, whatever it was that nobody answered.
func quiet(t *testing.T, l language) {
	e := newEngine(t)
	e.asked = []fault{{status: http.StatusServiceUnavailable}, {cut: true}, {status: http.StatusServiceUnavailable}}
	e.answers["o1"] = []string{"error", "cut", "error"}
	e.replies["o1"] = []fault{{status: http.StatusServiceUnavailable}, {cut: true}, {status: http.StatusServiceUnavailable}}
	p := l.run(t, "MAKEGOOD_URL="+e.server.URL)
	e.give(task("o1", "heartbeat", message{"times": 3, "ms": 100}))
	wants(t, e.answer("o1")["output"], message{"failed": 0.0})
	said := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	ready := "makegood-agent: ready: agent probe, up to 50 attempts at once"
	if l.name == "go" {
		ready = "taking tasks"
	}
	if len(said) != 2 || !strings.Contains(said[0], ready) || !strings.Contains(said[1], "no answer") {
		t.Errorf("it said %q, want that it is ready, and one line of all that was not answered", said)
	}
}
