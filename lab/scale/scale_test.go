package scale

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/supervisor"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shown fails if docs/scale.md does not show a table.
func shown(t *testing.T, table string) {
	t.Helper()
	t.Logf("\n%s", table)
	if !strings.Contains(read(t, "docs/scale.md"), "\n\n"+table+"\n") {
		t.Errorf("docs/scale.md does not show\n%s", table)
	}
}

func TestThePageSaysWhichPartIsFullFirst(t *testing.T) {
	shown(t, partsTable())
	template := read(t, "template.yaml")
	for _, line := range []string{"Default: 16\n", "Default: \"50\"\n", "shipping: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10}", "      Timeout: 50\n"} {
		if !strings.Contains(template, line) {
			t.Errorf("template.yaml does not say %q", line)
		}
	}
}

func TestThePageSaysHowEvenTheShardsAre(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 births")
	}
	table, err := shardsTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown(t, table)
}

// A shard of the index that is split in the middle of its keys has its writes in the upper half all the same: keys rise
// with time. Keys that lie anywhere would be in both.
func TestASplitOfAShardDoesNotHelpIt(t *testing.T) {
	if share := upperHalf(func(born time.Duration) time.Duration { return born + time.Minute }); share < 0.97 {
		t.Errorf("rising keys: %.3f of the writes are in the upper half", share)
	}
	random := rand.New(rand.NewPCG(1, 1))
	if share := upperHalf(func(time.Duration) time.Duration { return time.Duration(random.Int64()) }); share > 0.6 {
		t.Errorf("keys anywhere: %.3f of the writes are in the upper half", share)
	}
}

func played(t *testing.T, b backlog) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if out, err = play(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	})
	return out
}

func TestThePageSaysHowManyJobsASweepTellsOf(t *testing.T) {
	if testing.Short() {
		t.Skip("a million jobs, seven times")
	}
	var all []row
	for _, r := range backlogs(1_000_000) {
		all = append(all, row{r.name, r.backlog, played(t, r.backlog)})
	}
	table := sweepsTable(all)
	t.Logf("\n%s", table)
	near(t, table)
}

// near fails unless docs/scale.md has each row of a table, with numbers that are about the same: the order of the
// shards in a sweep is random, and with it how soon a queue is deep.
func near(t *testing.T, table string) {
	t.Helper()
	page := strings.Split(read(t, "docs/scale.md"), "\n")
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		if strings.HasPrefix(row, "|-") {
			continue
		}
		got := strings.Split(row, " | ")
		at := slices.IndexFunc(page, func(line string) bool { return strings.HasPrefix(line, got[0]+" | ") })
		if at < 0 {
			t.Errorf("docs/scale.md has no row for %s", got[0])
			continue
		}
		shown := strings.Split(page[at], " | ")
		for i := range got[1:] {
			a, b := numberOf(t, got[i+1]), numberOf(t, shown[i+1])
			if math.Abs(a-b) > 0.5*max(a, b)+1 {
				t.Errorf("docs/scale.md: %s: got %s, and it shows %s", got[0], got[i+1], shown[i+1])
			}
		}
	}
}

// numberOf reads the number of a cell; a cell without one is zero.
func numberOf(t *testing.T, cell string) float64 {
	t.Helper()
	cell = strings.ReplaceAll(strings.Trim(strings.TrimSuffix(cell, " |"), " |"), ",", "")
	cell = strings.TrimSuffix(cell, " min")
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil && strings.ContainsAny(cell[:1], "0123456789") {
		t.Fatalf("%q is no number", cell)
	}
	return n
}

// The shipped Supervisor tells of a million jobs within five minutes, and its queue never grows much above the limit; a
// tenth of them, here.
func TestABacklogIsToldOfWithoutAStampede(t *testing.T) {
	const jobs = 100_000
	out := played(t, backlog{jobs: jobs, shards: 16, atOnce: 8, waits: true, perSecond: 5000})
	if out.told > 30*time.Second || out.firstMinute != jobs || out.sent != jobs {
		t.Errorf("got %+v, want all told of within half a minute, once", out)
	}
	if most := supervisor.DefaultDepth + 8*supervisor.DefaultPage; out.mostWaiting > most {
		t.Errorf("%d events waited, want at most %d", out.mostWaiting, most)
	}
	// A queue that empties slowly is kept as full, and no fuller.
	slow := played(t, backlog{jobs: jobs, shards: 16, atOnce: 8, waits: true, perSecond: 500})
	if slow.sent > jobs*3/2 || slow.mostWaiting > 2*supervisor.DefaultDepth {
		t.Errorf("got %+v, want few messages more than jobs", slow)
	}
}
