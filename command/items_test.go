package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// linesOf is an engine on which a job o-1 has reserved 230 lines, but for four that are out of stock until they are
// not any more.
func linesOf(t *testing.T) (url string, restock func()) {
	t.Helper()
	var restocked atomic.Bool
	stock := agent.New("stock", agent.Do("reserve", func(_ context.Context, line int) (int, error) {
		if line%70 == 7 && !restocked.Load() {
			return 0, agent.NotApplied(agent.Final(fmt.Errorf("line %d is out of stock", line)))
		}
		return line, nil
	}), agent.Do("count", func(_ context.Context, in []*int) (int, error) {
		if len(in) != 230 {
			return 0, agent.NotApplied(agent.Final(errors.New("lines are missing")))
		}
		return len(in), nil
	}))
	engine, err := embedded.Open(t.Context(), embedded.Config{Agents: []agent.Handler{stock}})
	must(t, err)
	c, err := workflowfile.Parse("a.yaml", []byte(`
name: order
steps:
  - {name: reserve, map: {over: "${ [range(230)] }", tolerate: {items: 5}}, agent: stock, undo: none}
  - {name: count, agent: stock, with: "${ .steps.reserve.output }", undo: none}
`))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	url = runs(t, engine)
	_, _, err = engine.SubmitCurrent(t.Context(), "order", scheduler.Submission{ID: "o-1", Input: json.RawMessage("{}")})
	must(t, err)
	wants(t, 0, "Processed", "watch", "o-1", "--addr", url)
	return url, func() { restocked.Store(true) }
}

func TestTheItemsOfAMapAreCountedAndRedriven(t *testing.T) {
	url, restock := linesOf(t)
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, 0, "           230 items: 226 done, 4 failed\n             failed: 4, as item 7: line 7 is out of stock; step item_7 of job o-1~reserve~1~", at("get", "o-1")...)

	_, stdout, _ := ask(t, at("get", "o-1", "--tree")...)
	got := regexp.MustCompile(`~part_0~.*`).ReplaceAllString(births.ReplaceAllString(stdout, "~BIRTH"), "~part_0")
	if want := `o-1  order  Processed  [reserve done; count done]
  reserve: o-1~reserve~1~BIRTH  order~reserve  Processed
    230 items: 226 done, 4 failed
      failed: 4, as item 7: line 7 is out of stock; step item_7 of job o-1~reserve~1~BIRTH~part_0
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var all tree
	_, stdout, _ = ask(t, at("get", "o-1", "--tree", "--json")...)
	must(t, json.Unmarshal([]byte(stdout), &all))
	if n := len(all.Children); n != 1 || len(all.Children[0].Children) != 0 || all.Children[0].Items == nil || all.Children[0].Items.Failed != 4 {
		t.Errorf("got %s", stdout)
	}
	part := all.Children[0].Items.Failures[0].Job
	wants(t, 0, "item_7   skipped, attempt 1, 1 failure; last error: line 7 is out of stock", at("get", part)...)
	wants(t, codeUsage, "it does items of step part_0 of job o-1~reserve~1~", at("redrive", part)...)
	wants(t, 0, "    30 items: 29 done, 1 failed\n", at("get", all.Children[0].ID, "--tree")...)

	wants(t, 0, "does the failed items of its maps again", at("redrive", "o-1", "--dry-run")...)
	restock()
	wants(t, codeUsage, "--index wants one job and its step with the map", at("redrive", "o-1", "--index", "7")...)
	wants(t, codeUsage, `"3-" names no items`, at("redrive", "o-1", "reserve", "--index", "3-")...)
	wants(t, codeUsage, "refused: item 8 of step reserve has not failed", at("redrive", "o-1", "reserve", "--index", "7-8")...)
	wants(t, 0, "o-1", at("redrive", "o-1", "reserve", "--index", "7", "--reason", "a crate")...)
	wants(t, 0, "redrive of reserve  by", at("watch", "o-1")...)
	wants(t, 0, "1 failed item (7): a crate", at("get", "o-1")...)
	wants(t, 0, "230 items: 227 done, 3 failed\n", at("get", "o-1")...)
	wants(t, 0, "o-1", at("redrive", "o-1", "--definition", "current", "--reason", "restocked")...)
	wants(t, 0, "3 failed items: restocked", at("watch", "o-1")...)
	wants(t, 0, "230 items: 230 done\n", at("get", "o-1")...)
	wants(t, codeUsage, "refused: none of its maps that have ended has a failed item", at("redrive", "o-1")...)
	wants(t, codeOtherwise, "none of its maps that have ended has a failed item", at("redrive", "--state", string(makegood.JobProcessed), "--workflow", "order", "--dry-run")...)
}

func TestALineSaysWhatThereIsOfItems(t *testing.T) {
	got := strings.Join(itemLines(&makegood.Items{
		All: 7, NotBegun: 1, UnderWay: 1, Waiting: 1, Undone: 1, Uncounted: 3, PerSecond: 0.5, SecondsLeft: 10,
		Stands: []makegood.ItemGroup{{Reason: "in Error: no", Job: "j"}, {Reason: "a\x1bb", Items: 1, Index: 3, Job: "k", Step: "item_3"}},
	}, ""), "\n")
	want := "7 items: 1 under way, 1 not begun, 1 before a person, 1 undone, 3 not counted; 30.0 a minute, 10s left\n" +
		"  before a person: job j: in Error: no\n  before a person: 1, item 3: a b; step item_3 of job k"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
