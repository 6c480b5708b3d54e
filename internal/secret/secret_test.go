package secret

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
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
	from := source(map[string]string{"a": `s"1<`, "b": "ü", "long": strings.Repeat("l", limits.MaxSecretBytes)})
	for _, c := range []struct{ name, input, want, err string }{
		{"none", `{"a": 1}`, `{"a": 1}`, ``},
		{"whole", `""`, `"s\"1<"`, ``},
		{"spliced", `{"n":12345678901234567890,"t":["bär:@"]}`, `{"n":12345678901234567890,"t":["bär:s\"1<@ü"]}`, ``},
		{"escaped", `{"a/b":{"~":"x"}}`, `{"a/b":{"~":"xü"}}`, ``},
		{"no text", `{"t":[7]}`, ``, `secret "a" at "/t/0" of the input: no text is there`},
		{"nowhere", `{"t":[]}`, ``, `secret "a" at "/t/0" of the input: there is no value`},
		{"beyond", `"x"`, ``, `secret "a" at "" of the input: it belongs behind character 2 of a text of 1`},
		{"missing", `""`, ``, `secret "none": there is no such secret`},
		{"broken", `""`, ``, `secret "broken": throttled`},
		{"too large", `"` + strings.Repeat("x", makegood.MaxPayloadBytes-limits.MaxSecretBytes) + `"`, ``, `the input has 262146 bytes with its secrets, the limit is 262144`},
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
		got, _, err := Fill(context.Background(), new(task(c.input, secrets...)), from)
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
	if _, _, err := Fill(context.Background(), &input, source(values)); err != nil {
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

// However a service spells what it was sent, the secret is found: as JSON of this or that language, in a URL, in HTML, in a form, as bytes,
// in base64 and hex, and in several of them at once.
func TestASecretIsFoundHoweverItIsSpelled(t *testing.T) {
	const value = `p/ä+"<'&x y😀`
	h := hider(t, map[string]string{"key": value})
	for name, said := range map[string]string{
		"as it is":            value,
		"JSON of Go":          `p/ä+\"\u003c'\u0026x y😀`,
		"JSON of PHP":         `p\/\u00e4+\"<'&x y\ud83d\ude00`,
		"JSON of .NET":        `p/\u00E4\u002B\u0022\u003C\u0027\u0026x y\uD83D\uDE00`,
		"JSON of Python":      `p/\u00e4+\"<'&x y\ud83d\ude00`,
		"a literal of Python": `p/\xe4+"<\'&x y\U0001f600`,
		"bytes of Python":     `p/\xc3\xa4+"<\'&x y\xf0\x9f\x98\x80`,
		"a literal of PHP":    `p/ä+\"<'&x y\u{1F600}`,
		"octal":               `p/\303\244+\"<'&x y\360\237\230\200`,
		"a URL":               `p%2F%C3%A4%2B%22%3C%27%26x%20y%F0%9F%98%80`,
		"a URL of .NET":       `p%2f%c3%a4%2b%22%3c%27%26x+y%f0%9f%98%80`,
		"all of it percents":  `%70%2F%C3%A4%2B%22%3C%27%26%78%20%79%F0%9F%98%80`,
		"HTML of Go":          `p/ä+&#34;&lt;&#39;&amp;x y😀`,
		"HTML of PHP":         `p/ä+&quot;&lt;&#039;&amp;x y😀`,
		"HTML of .NET":        `p/&#228;+&quot;&lt;&#39;&amp;x y&#128512;`,
		"HTML of Python":      `p/ä+&quot;&lt;&#x27;&amp;x y😀`,
		"base64":              base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 of a URL":     base64.RawURLEncoding.EncodeToString([]byte(value)),
		"hex":                 hex.EncodeToString([]byte(value)),
		"JSON in JSON":        `p\\/\\u00e4+\\\"<'&x y\\ud83d\\ude00`,
		"a URL in HTML":       `p%2F%C3%A4%2B%22%3C&#39;%26x&#x25;20y%F0%9F%98%80`,
		"a URL in a URL":      url.QueryEscape(url.QueryEscape(value)),
	} {
		for _, around := range []string{`it was "%s".`, `%s`, `100%% of \n a &b; %s, \`} {
			said, want := fmt.Sprintf(around, said), fmt.Sprintf(around, "[secret key]")
			if got := h.Text(said); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
			output, _ := json.Marshal([]string{said})
			var kept []string
			if err := json.Unmarshal(h.Output(output), &kept); err != nil || kept[0] != want {
				t.Errorf("%s in an output: got %s, %v, want %s", name, kept, err, want)
			}
		}
	}
}

// A secret whose own text looks like escapes, or that only Latin-1 spells in one byte, is found as well.
func TestASecretThatLooksLikeEscapesIsFound(t *testing.T) {
	h := hider(t, map[string]string{"key": `a%41&lt;\n\\z`, "latin": "tück"})
	for said, want := range map[string]string{
		`is a%41&lt;\n\\z.`:               `is [secret key].`,
		`is a%41\u0026lt;\\n\\\\z.`:       `is [secret key].`,
		`is a%2541%26lt%3B%5Cn%5C%5Cz.`:   `is [secret key].`,
		`is a%41&amp;lt;\n\\z.`:           `is [secret key].`,
		`is t%FCck.`:                      `is [secret latin].`,
		`is tuck, \ and 100% & more; %zz`: `is tuck, \ and 100% & more; %zz`,
	} {
		if got := h.Text(said); got != want {
			t.Errorf("%s: got %s, want %s", said, got, want)
		}
	}
}

// Behind a name in a Basic header stands base64 that has the secret at each of three places; no more than a character of it at
// either side stays.
func TestASecretBehindANameInABasicHeaderIsFound(t *testing.T) {
	h := hider(t, map[string]string{"key": "hunter-two-22"})
	for _, user := range []string{"", "a:", "ab:", "abc:", "abcd:"} {
		for _, end := range []string{"", "!", "!!", "!!!"} {
			said := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+"hunter-two-22"+end)) + " was refused"
			got := h.Text(said)
			if left := len(strings.Replace(got, "[secret key]", "", 1)) - len("Basic  was refused"); !strings.Contains(got, "[secret key]") || left > len(user)*8/6+2+len(end)*8/6+4 {
				t.Errorf("%s: got %s, want the secret out of it", said, got)
			}
		}
	}
}

// Of a text that was cut off within an escape, the beginning of the secret is taken out, too; what only looks so stays.
func TestTheBeginningOfASecretIsFoundWhereATextWasCutOff(t *testing.T) {
	h := hider(t, map[string]string{"key": "secr<ä😀t"})
	for said, want := range map[string]string{
		`was secr`:                     `was [secret key]`,
		`was secr\`:                    `was [secret key]`,
		`was secr\u00`:                 `was [secret key]`,
		`was secr%3`:                   `was [secret key]`,
		`was secr&l`:                   `was secr&l`,
		`was secr&#6`:                  `was [secret key]`,
		`was secr%3c%C3`:               `was [secret key]`,
		`was secr\u003c\u00e4\ud83d`:   `was [secret key]`,
		`was secr\u003c\u00e4\ud83d\u`: `was [secret key]`,
		`was secr & more`:              `was secr & more`,
		`was secr\n`:                   `was secr\n`,
		`was sec`:                      `was sec`,
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
