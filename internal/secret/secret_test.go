package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// source returns these, and fails for what is called broken.
func source(values map[string]string) agent.Secrets {
	return func(_ context.Context, name string) (string, error) {
		if value, there := values[name]; there {
			return value, nil
		}
		if name == "broken" {
			return "", errors.New("throttled")
		}
		return "", agent.ErrNoSecret
	}
}

func task(input string, secrets ...makegood.TaskSecret) makegood.Task {
	return makegood.Task{Input: json.RawMessage(input), Secrets: secrets}
}

func TestSecretsComeToTheirPlaces(t *testing.T) {
	from := source(map[string]string{"a": `s"1<`, "b": "ü", "long": strings.Repeat("l", makegood.MaxSecretBytes)})
	for _, c := range []struct{ name, input, want, err string }{
		{"none", `{"a": 1}`, `{"a": 1}`, ``},
		{"whole", `""`, `"s\"1<"`, ``},
		{"spliced", `{"n":12345678901234567890,"t":["bär:@"]}`, `{"n":12345678901234567890,"t":["bär:s\"1<@ü"]}`, ``},
		{"escaped", `{"a/b":{"~":"x"}}`, `{"a/b":{"~":"xü"}}`, ``},
		{"no text", `{"t":[7]}`, ``, `secret "a" at "/t/0" of the input: no text is there`},
		{"nowhere", `{"t":[]}`, ``, `secret "a" at "/t/0" of the input: nothing is there`},
		{"beyond", `"x"`, ``, `secret "a" at "" of the input: it belongs behind character 2 of a text of 1`},
		{"missing", `""`, ``, `secret "none": there is no such secret`},
		{"broken", `""`, ``, `secret "broken": throttled`},
		{"too large", `"` + strings.Repeat("x", makegood.MaxPayloadBytes-makegood.MaxSecretBytes) + `"`, ``, `the input has 262146 bytes with its secrets, the limit is 262144`},
	} {
		secrets := map[string][]makegood.TaskSecret{
			"whole":     {{Name: "a"}},
			"spliced":   {{Path: "/t/0", At: 4, Name: "a"}, {Path: "/t/0", At: 5, Name: "b"}},
			"escaped":   {{Path: "/a~1b/~0", At: 1, Name: "b"}},
			"no text":   {{Path: "/t/0", Name: "a"}},
			"nowhere":   {{Path: "/t/0", Name: "a"}},
			"beyond":    {{At: 2, Name: "a"}},
			"missing":   {{Name: "none"}},
			"broken":    {{Name: "broken"}},
			"too large": {{Name: "long"}},
		}[c.name]
		got, _, err := Fill(context.Background(), task(c.input, secrets...), from)
		if err != nil {
			failure := agent.Failure(err)
			if failure.Message != c.err || failure.Applied != makegood.AppliedNo || failure.Retryable != (c.name == "broken") {
				t.Errorf("%s: got %+v, want %q, surely without effect, and final unless the source is broken", c.name, failure, c.err)
			}
			continue
		}
		if string(got.Input) != c.want || c.err != "" || len(got.Secrets) > 0 {
			t.Errorf("%s: got %s, want %s %s", c.name, got.Input, c.want, c.err)
		}
	}
}

func hider(t *testing.T, values map[string]string) Hider {
	t.Helper()
	var secrets []makegood.TaskSecret
	for name := range values {
		secrets = append(secrets, makegood.TaskSecret{Name: name})
	}
	input := task(`""`)
	input.Secrets = secrets[:1]
	if _, _, err := Fill(context.Background(), input, source(values)); err != nil {
		t.Fatal(err)
	}
	return newHider(values)
}

func TestWhatIsSaidOfASecretHasItsName(t *testing.T) {
	h := hider(t, map[string]string{"key": "pa ss/w<rd\"", "inner": "ss/w", "pin": "123"})
	for said, want := range map[string]string{
		`401: pa ss/w<rd" is wrong`:                        `401: [secret key] is wrong`,
		`GET /?k=pa+ss%2Fw%3Crd%22&n=1`:                    `GET /?k=[secret key]&n=1`,
		`/pa%20ss%2Fw%3Crd%22/`:                            `/[secret key]/`,
		`<p>pa ss/w&lt;rd&#34;</p>`:                        `<p>[secret key]</p>`,
		`{"k":"pa ss/w\u003crd\""}`:                        `{"k":"[secret key]"}`,
		`only ss/w of it`:                                  `only [secret inner] of it`,
		`Basic cGEgc3Mvdzxyd2Q=`:                           `Basic cGEgc3Mvdzxyd2Q=`,
		`Basic cGEgc3MvdzxyZCI=`:                           `Basic [secret key]`,
		`it was cut off: pa ss`:                            `it was cut off: [secret key]`,
		`a pin of 123 is too short to be told from chance`: `a pin of 123 is too short to be told from chance`,
	} {
		if got := h.Text(said); got != want {
			t.Errorf("%s: got %s, want %s", said, got, want)
		}
	}
}

// TestAHiddenErrorIsStillWhatItWas: what is to follow from an error does not change with its words.
func TestAHiddenErrorIsStillWhatItWas(t *testing.T) {
	h := hider(t, map[string]string{"key": "hunter22"})
	inner := errors.New("no")
	got := h.Error(agent.Final(agent.NotApplied(fmt.Errorf("hunter22: %w", inner))))
	failure := agent.Failure(got)
	if failure.Message != "[secret key]: no" || failure.Retryable || failure.Applied != makegood.AppliedNo || !errors.Is(got, inner) {
		t.Errorf("got %+v, %v", failure, got)
	}
	if other := errors.New("fine"); h.Error(other) != other || h.Error(nil) != nil {
		t.Error("an error without a secret was changed")
	}
}

func TestAnOutputThatEchoesASecretIsKeptWithoutIt(t *testing.T) {
	h := hider(t, map[string]string{"key": "1234"})
	for output, want := range map[string]string{
		`{"n": 1.0, "ok":true}`:               `{"n": 1.0, "ok":true}`,
		`{"n":12345,"k":["a 1234"],"1234":0}`: `{"[secret key]":0,"k":["a [secret key]"],"n":12345}`,
		`{"n": 1234}`:                         `{"n":"[secret key]"}`,
		`["\u0031\u00323\u0034 and \/"]`:      `["[secret key] and /"]`,
		`["nothing of it \/"]`:                `["nothing of it \/"]`,
		`not JSON 1234`:                       `not JSON 1234`,
		``:                                    ``,
	} {
		if got := h.Output(json.RawMessage(output)); string(got) != want {
			t.Errorf("%s: got %s, want %s", output, got, want)
		}
	}
}

func TestWhatASourceGaveIsKeptForAWhile(t *testing.T) {
	now, asked := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), 0
	values := map[string]string{"a": "1"}
	kept := Kept(func(ctx context.Context, name string) (string, error) {
		asked++
		return source(values)(ctx, name)
	}, func() time.Time { return now })
	get := func(name, want string, times int) {
		t.Helper()
		got, err := kept(context.Background(), name)
		if got != want || (err != nil) != (want == "") || asked != times {
			t.Errorf("%s: got %q, %v, asked %d times; want %q, asked %d times", name, got, err, asked, want, times)
		}
	}
	get("a", "1", 1)
	values["a"] = "2"
	get("a", "1", 1)
	get("none", "", 2)
	get("none", "", 3)
	now = now.Add(keptFor)
	get("a", "2", 4)
	for i := range maxKept + 1 {
		name := fmt.Sprintf("n%d", i)
		values[name] = "x"
		get(name, "x", 5+i)
	}
	values["a"] = "3"
	get("a", "3", 5+maxKept+1)
}

func TestASecretOfTheEnvironmentHasItsVariable(t *testing.T) {
	from := Environment(func(name string) (string, bool) {
		value, set := map[string]string{"MAKEGOOD_SECRET_STRIPE_KEY": "sk", "MAKEGOOD_SECRET_EMPTY": ""}[name]
		return value, set
	})
	if got, err := from(context.Background(), "stripe_key"); got != "sk" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, name := range []string{"empty", "other"} {
		_, err := from(context.Background(), name)
		if want := "there is no such secret: MAKEGOOD_SECRET_" + strings.ToUpper(name) + " is not set"; !errors.Is(err, agent.ErrNoSecret) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}
