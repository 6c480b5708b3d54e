//go:build kits

package kits_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// methods are the requests about payloads that came for a job, in short.
func (e *engine) methods(job string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, c := range e.carried[job] {
		all = append(all, strings.TrimSpace(c.method+" "+c.part))
	}
	return strings.Join(all, ", ")
}

// payloadBehaviours is what every kit does with large payloads.
var payloadBehaviours = []behaviour{
	{"an output that is too large for a message becomes a payload", func(t *testing.T, e *engine) {
		e.give(task("pl1", "large", message{"bytes": 256<<10 - 2}), task("pl2", "large", message{"bytes": 256<<10 - 1}))
		wants(t, e.answer("pl1")["output"], strings.Repeat("x", 256<<10-2))
		text := []byte(`"` + strings.Repeat("x", 256<<10-1) + `"`)
		wants(t, e.answer("pl2")["output"], referenceTo(text, "application/json"))
		e.mu.Lock()
		defer e.mu.Unlock()
		wants(t, string(e.kept["pl2"][hashOf(text)]), string(text))
	}},
	{"an output is measured as it is sent", func(t *testing.T, e *engine) {
		most := (256<<10 - 2) / 2
		for job, n := range map[string]int{"pe1": 45_000, "pe2": most} {
			e.give(task(job, "large", message{"bytes": n, "of": "é"}))
			wants(t, e.answer(job)["output"] == strings.Repeat("é", n), true)
		}
		e.give(task("pe3", "large", message{"bytes": most + 1, "of": "é"}))
		wants(t, e.answer("pe3")["output"], referenceTo([]byte(`"`+strings.Repeat("é", most+1)+`"`), "application/json"))
	}},
	{"what is written comes whole, from whatever it is", func(t *testing.T, e *engine) {
		for i, c := range []struct {
			from   string
			bytes  int
			length int64
		}{{"memory", 300_001, 300_001}, {"file", 300_001, 300_001}, {"once", 300_001, -1}, {"memory", 0, 0}, {"file", 0, 0}, {"once", 0, -1}} {
			job := fmt.Sprintf("pw%d", i)
			e.give(task(job, "press", message{"from": c.from, "bytes": c.bytes, "type": "text/plain"}))
			wants(t, e.answer(job)["output"].(message)["report"].(message)["$payload"].(message)["sha256"], hashOf(lines(c.bytes)))
			e.mu.Lock()
			if got := e.carried[job][0]; c.bytes > 0 && got.length != c.length {
				t.Errorf("%s: said to have %d bytes, want %d", c.from, got.length, c.length)
			}
			wants(t, string(e.kept[job][hashOf(lines(c.bytes))]), string(lines(c.bytes)))
			e.mu.Unlock()
		}
	}},
	{"a payload is read to its end, and a part as a part", func(t *testing.T, e *engine) {
		text := lines(300_001)
		e.give(
			task("pr1", "inspect", message{"report": e.lay("pr1", text, "text/plain")}),
			task("pr2", "inspect", message{"report": e.lay("pr2", text, ""), "offset": 100_000, "length": 7}),
			task("pr3", "inspect", message{"report": e.lay("pr3", text, ""), "offset": 300_000}),
			task("pr4", "inspect", message{"report": e.lay("pr4", nil, "")}),
			task("pr5", "inspect", message{"report": e.lay("pr5", text, ""), "offset": 300_000, "length": 2}),
		)
		wants(t, e.answer("pr1")["output"], message{"bytes": 300_001.0, "sha256": hashOf(text)})
		wants(t, e.answer("pr2")["output"], message{"bytes": 7.0, "sha256": hashOf(text[100_000:100_007])})
		wants(t, e.methods("pr2"), "GET bytes=100000-100006")
		wants(t, e.answer("pr3")["output"], message{"bytes": 1.0, "sha256": hashOf(text[300_000:])})
		wants(t, e.answer("pr4")["output"], message{"bytes": 0.0, "sha256": hashOf(nil)})
		failed(t, e.answer("pr5"), false, "unknown", 0, "bytes 300000 to 300002 of a payload of 300001")
	}},
	{"an input that is a payload is read, unless the action takes references", func(t *testing.T, e *engine) {
		value, large := []byte(`{"a": ["ü", 1]}`), message{"$payload": message{"sha256": hashOf(nil), "bytes": 16<<20 + 1, "type": "application/json"}}
		e.give(
			task("pi1", "echo", e.lay("pi1", value, "application/json")), task("pi2", "echo", e.lay("pi2", value, "text/plain")),
			task("pi3", "echo", large), task("pi4", "passOn", e.lay("pi4", value, "text/plain")),
			task("pi5", "echo", e.lay("nobody", []byte("1"), "application/json")), task("pi6", "parsed", e.lay("pi6", []byte(`{"must":7}`), "application/json")),
			task("pi7", "echo", message{"$payload": message{"sha256": "ab", "bytes": 1.0, "type": "application/json"}, "b": 1}),
			task("pi8", "inspect", message{"report": message{"$payload": message{"sha256": "ab", "bytes": 1}}}),
		)
		wants(t, e.answer("pi1")["output"], message{"a": []any{"ü", 1.0}})
		failed(t, e.answer("pi2"), false, "no", 0, `input: is a payload of type`, "text/plain", "the action takes JSON")
		failed(t, e.answer("pi3"), false, "no", 0, "input: is a payload of 16777217 bytes", "at most 16777216")
		wants(t, e.answer("pi4")["output"], message{"$payload": message{"sha256": hashOf(value), "bytes": float64(len(value)), "type": "text/plain"}})
		failed(t, e.answer("pi5"), false, "no", 0, "input: ", "404", "as scripted")
		wants(t, e.answer("pi6")["output"], 7.0)
		// It is nothing that refers, and where it came from nobody keeps payloads.
		wants(t, e.answer("pi7")["output"], message{"$payload": message{"sha256": "ab", "bytes": 1.0, "type": "application/json"}, "b": 1.0})
		// Whether the action has begun when that is found depends on whether its input has a type.
		applied, _ := e.answer("pi8")["error"].(message)["applied"].(string)
		failed(t, e.answer("pi8"), false, applied, 0, "sha256 is", "ab", "want 64 hex digits in lower case")
		wants(t, e.methods("pi4")+e.methods("pi3")+e.methods("pi2"), "")
	}},
	{"an input that is a payload of no JSON is refused, and had no effect", func(t *testing.T, e *engine) {
		for i, text := range []string{
			strings.Repeat("[", 100_000), `{"a": NaN}`, "-Infinity", "\ufeff1", "\xff\xfe1\x00", "1\x00", "1 2", `"`,
		} {
			job := fmt.Sprintf("pj%d", i)
			e.give(task(job, "echo", e.lay(job, []byte(text), "application/json")))
			failed(t, e.answer(job), false, "no", 0, "input: ")
		}
		e.give(task("pjnull", "echo", e.lay("pjnull", nil, "application/json")))
		reply := e.answer("pjnull")
		wants(t, reply["type"], "StepSucceeded")
		wants(t, reply["output"], nil)
	}},
	{"an undo runs also where what its step has written cannot be read as JSON", func(t *testing.T, e *engine) {
		huge := message{"$payload": message{"sha256": hashOf(nil), "bytes": 16<<20 + 1, "type": "application/json"}}
		for job, output := range map[string]message{
			"pu2": e.lay("pu2", []byte("%PDF"), "application/pdf"), "pu3": huge, "pu4": e.lay("pu4", []byte("%PDF"), "application/json"),
			"pu5": e.lay("pu5", []byte(strings.Repeat("[", 100_000)), "application/json"),
		} {
			reference, err := json.Marshal(output)
			if err != nil {
				t.Fatal(err)
			}
			e.give(task(job, "unecho", message{}, message{"undo": message{"forwardKey": "f/s/1", "outcome": "done", "output": output}}))
			failed(t, e.answer(job), false, "unknown", 0, `{"done":`+string(reference)+`,"forwardKey":"f/s/1","outcome":"done"}`)
		}
	}},
	{"an undo is told the value that its step has written", func(t *testing.T, e *engine) {
		e.give(task("pu1", "unecho", message{}, message{"undo": message{
			"forwardKey": "f/s/1", "outcome": "done", "output": e.lay("pu1", []byte(`{"a":1}`), "application/json"),
		}}))
		failed(t, e.answer("pu1"), false, "unknown", 0, `{"done":{"a":1},"forwardKey":"f/s/1","outcome":"done"}`)
	}},
	{"a download that breaks is read on, and one that stays broken is tried again by another attempt", func(t *testing.T, e *engine) {
		text := lines(300_001)
		e.happen(func() {
			e.carrying["pb1"] = []fault{{cut: true, after: 131_072}, {status: 503}, {cut: true, after: 65_536}}
			for range 20 {
				e.carrying["pb2"] = append(e.carrying["pb2"], fault{status: 503})
			}
		})
		e.give(task("pb1", "inspect", message{"report": e.lay("pb1", text, "")}), task("pb2", "inspect", message{"report": e.lay("pb2", text, "")}))
		wants(t, e.answer("pb1")["output"], message{"bytes": 300_001.0, "sha256": hashOf(text)})
		wants(t, e.methods("pb1"), "GET, GET bytes=131072-300000, GET bytes=131072-300000, GET bytes=196608-300000")
		failed(t, e.answer("pb2"), true, "unknown", 0, "503", "as scripted")
	}},
	{"an upload that breaks is sent again where it can be", func(t *testing.T, e *engine) {
		for _, from := range []string{"memory", "file"} {
			job := "pa" + from
			e.happen(func() {
				e.carrying[job] = []fault{{cut: true, after: 1 << 20}, {status: 503, after: 1 << 30}}
			})
			e.give(task(job, "press", message{"from": from, "bytes": 3 << 20}))
			wants(t, e.answer(job)["output"], message{"report": referenceTo(lines(3<<20), "")})
			wants(t, e.methods(job), "PUT, PUT, PUT")
		}
		e.happen(func() { e.carrying["paonce"] = []fault{{cut: true, after: 1 << 20}} })
		e.give(task("paonce", "press", message{"from": "once", "bytes": 3 << 20}))
		failed(t, e.answer("paonce"), true, "unknown", 0)
		wants(t, e.methods("paonce"), "PUT")
	}},
	{"what is said to be stored, but not as what, is sent again where it can be", func(t *testing.T, e *engine) {
		for _, from := range []string{"memory", "once"} {
			e.happen(func() {
				e.carrying["pg"+from] = []fault{{status: http.StatusCreated, html: true, after: 1 << 30}}
			})
			e.give(task("pg"+from, "press", message{"from": from, "bytes": 1000}))
		}
		wants(t, e.answer("pgmemory")["output"], message{"report": referenceTo(lines(1000), "")})
		wants(t, e.methods("pgmemory"), "PUT, PUT")
		failed(t, e.answer("pgonce"), true, "unknown", 0)
		wants(t, e.methods("pgonce"), "PUT")
	}},
	{"an error of what is written from is no error of the line", func(t *testing.T, e *engine) {
		e.give(task("ps1", "press", message{"from": "broken", "bytes": 100_000}))
		failed(t, e.answer("ps1"), true, "unknown", 0, "the source broke")
		if text := e.answer("ps1")["error"].(message)["message"].(string); strings.Contains(text, "could not be carried") {
			t.Errorf("got %q, want what broke alone", text)
		}
		e.until("the end of what was sent", func() bool { return len(e.carried["ps1"]) == 2 })
		wants(t, e.methods("ps1"), "PUT, broken off")
	}},
	{"what is no media type is refused before anything is sent", func(t *testing.T, e *engine) {
		for i, kind := range []string{"text/plain\r\nX-Evil: 1", "pdf", "text/é", "a/" + strings.Repeat("b", 99)} {
			job := fmt.Sprintf("py%d", i)
			e.give(task(job, "press", message{"from": "memory", "bytes": 10, "type": kind}))
			failed(t, e.answer(job), false, "unknown", 0, "type ")
			wants(t, e.methods(job), "")
		}
	}},
	{"a download that is not what was asked for is refused", func(t *testing.T, e *engine) {
		text := lines(300_001)
		e.happen(func() {
			e.carrying["pq1"] = []fault{{part: "bytes 0-6/300001"}}
			e.carrying["pq2"] = []fault{{part: "bytes 100000-100006/300002"}}
			e.carrying["pq3"] = []fault{{encoding: "gzip"}}
			e.carrying["pq4"] = []fault{{encoding: "br"}}
		})
		part := message{"offset": 100_000, "length": 7}
		for i, rest := range []message{part, part, part, {}} {
			job := fmt.Sprintf("pq%d", i+1)
			input := message{"report": e.lay(job, text, "")}
			maps.Copy(input, rest)
			e.give(task(job, "inspect", input))
			failed(t, e.answer(job), false, "unknown", 0, "the bytes of the payload are not those written")
		}
	}},
	{"what would come again with every attempt is final", func(t *testing.T, e *engine) {
		text := lines(300_001)
		e.lay("pf1", nil, "")
		other := e.lay("pf2", text, "")
		e.happen(func() { e.kept["pf2"][hashOf(text)] = append([]byte("X"), text[1:]...) })
		e.happen(func() {
			e.carrying["pf3"] = []fault{{status: 500, final: true}}
			// Of a refusal of what is still being sent the connection may know before the sender.
			e.carrying["pf4"] = []fault{{status: 413, final: true, after: 1 << 30}}
			e.carrying["pf6"] = []fault{{status: 401}}
		})
		e.give(
			task("pf1", "inspect", message{"report": referenceTo(text, "")}), task("pf2", "inspect", message{"report": other}),
			task("pf3", "inspect", message{"report": e.lay("pf3", text, "")}), task("pf4", "press", message{"from": "once", "bytes": 200_000}),
			task("pf5", "press", message{"from": "memory", "bytes": 100<<20 + 1}), task("pf6", "press", message{"from": "memory", "bytes": 1}),
		)
		failed(t, e.answer("pf1"), false, "unknown", 0, "404", "as scripted")
		failed(t, e.answer("pf2"), false, "unknown", 0, "the bytes of the payload are not those written")
		failed(t, e.answer("pf3"), false, "unknown", 0, "500", "as scripted")
		failed(t, e.answer("pf4"), false, "unknown", 0, "413", "as scripted")
		failed(t, e.answer("pf5"), false, "unknown", 0, "104857600")
		wants(t, e.methods("pf5"), "")
		failed(t, e.answer("pf6"), true, "unknown", 0, "401", "as scripted")
		wants(t, e.methods("pf6"), "PUT")
	}},
	{"what turns out to be too much on its way is ended, and final", func(t *testing.T, e *engine) {
		e.happen(func() { e.drained["pt1"] = true })
		e.give(task("pt1", "press", message{"from": "once", "bytes": 100<<20 + 1}))
		failed(t, e.answer("pt1"), false, "unknown", 0, "more than 104857600 bytes")
		e.until("the end of what was sent", func() bool { return len(e.carried["pt1"]) == 2 })
		wants(t, e.methods("pt1"), "PUT, broken off")
	}},
	{"an upload whose time is up is a failure that says so", func(t *testing.T, e *engine) {
		e.happen(func() {
			e.drained["pm1"] = true
			for range 20 {
				e.carrying["pm1"] = append(e.carrying["pm1"], fault{status: 503})
			}
		})
		e.give(task("pm1", "press", message{"from": "memory", "bytes": 10}, message{"timeoutMs": 3000}))
		failed(t, e.answer("pm1"), true, "unknown", 0, "out of time")
	}},
	{"who is told of a payload that the attempt is over says nothing", func(t *testing.T, e *engine) {
		e.happen(func() {
			for _, job := range []string{"po1", "po2"} {
				e.carrying[job], e.answers[job] = []fault{{status: http.StatusConflict}}, []string{"over"}
			}
		})
		e.give(task("po1", "press", message{"from": "once", "bytes": 10}), task("po2", "inspect", message{"report": e.lay("po2", lines(9), "")}))
		e.give(task("po-witness", "sleep", message{"ms": slept}))
		e.answer("po-witness")
		silent(t, e, "po1")
		silent(t, e, "po2")
	}},
}

// What no engine on a wire can see of the kit for Python: its readers, its sources, and a bucket that is busy.
func TestThePythonKitAlone(t *testing.T) {
	t.Parallel()
	cmd := python(t)
	cmd.Args[1] = "agents/payload_cases.py"
	cmd.Env = append(os.Environ(), cmd.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// 100 MB go through each kit, in and out, by pieces.
func TestAHundredMegabytesGoThroughEachKit(t *testing.T) {
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			e := newEngine(t)
			e.drained["m2"], e.endless["m3"] = true, true
			p := l.run(t, "MAKEGOOD_URL="+e.server.URL)
			e.give(task("m1", "press", message{"from": "once", "bytes": 1 << 20}))
			e.answer("m1")
			before := p.peak()
			nulls := sha256.New()
			for range 100 {
				_, _ = nulls.Write(make([]byte, 1<<20))
			}
			ref := message{"$payload": message{"sha256": hex.EncodeToString(nulls.Sum(nil)), "bytes": 100 << 20}}
			e.give(task("m2", "press", message{"from": "once", "bytes": 100 << 20}))
			wants(t, e.answer("m2")["type"], "StepSucceeded")
			e.give(task("m3", "inspect", message{"report": ref}))
			wants(t, e.answer("m3")["output"].(message)["bytes"], float64(100<<20))
			grown := p.peak() - before
			if t.Logf("before %d KB, %d KB more for 100 MB out and in", before, grown); grown > 80<<10 {
				t.Errorf("its memory grew by %d KB, want pieces", grown)
			}
		})
	}
}

// peak is how much memory a process has had at most, in KB.
func (p *process) peak() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		p.t.Skip(err) // not on every system
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}
