package command

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// moments are the times in the text of an alert, which differ in each run.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d( UTC|Z)`)

// What docs/alarms.md shows is what a webhook gets: each command is typed, and the alert that follows has the text below it.
func TestThePageOnAlarms(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a job is late; make whole does")
	}
	texts := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		texts <- m.Text
	}))
	defer hook.Close()
	url := alarmed(t, hook.URL+"/secret")
	commands, alerts := docBlocks(t, "alarms.md", "console"), docBlocks(t, "alarms.md", "text")
	if len(commands) != len(alerts) {
		t.Fatalf("%d commands and %d alerts", len(commands), len(alerts))
	}
	for i, command := range commands {
		command = strings.TrimPrefix(strings.TrimSpace(command), "$ makegood ")
		wants(t, 0, "o-", append(shellWords(command), "--addr", url)...)
		want := moments.ReplaceAllString(alerts[i], "TIME")
		got := moments.ReplaceAllString(<-texts, "TIME")
		if strings.Contains(got, "will be late") && !strings.Contains(want, "will be late") {
			got = moments.ReplaceAllString(<-texts, "TIME") // A computer that is busy may take so long that this is true, too.
		}
		if strings.Contains(want, "will be late") {
			wants(t, 0, "o-1", "list", "--late-within", "1h", "--addr", url)
			wants(t, 0, "an operator was told that it will be late", "get", "o-1", "--addr", url)
		}
		if got != want {
			t.Errorf("%s: got\n%s\nthe page has\n%s", command, got, want)
		}
	}
}

// alarmed serves an engine that runs, with the workflow of the page, which expects its jobs within four seconds here.
func alarmed(t *testing.T, hook string) (url string) {
	t.Helper()
	where := devOptions{data: "data", addr: defaultAddr}.where("http://" + defaultAddr)
	engine, err := embedded.Open(t.Context(), embedded.Config{
		Agents: thriftyBank(), Notifier: newDevNotifier(slog.New(slog.DiscardHandler), hook, func() notify.Where { return where }),
	})
	must(t, err)
	c, err := workflowfile.Parse("order.yaml", []byte(strings.Replace(docBlocks(t, "alarms.md", "yaml")[0], "expect: 10m", "expect: 4s", 1)))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	return runs(t, engine)
}
