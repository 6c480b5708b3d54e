package page_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/limits"
)

type userKey struct{}

// A program's Caller expects what its own middleware puts into every request, and panics where that is missing. A repair goes on
// without a request of anybody's: it asks as who began it, whom the page shows, now and after a restart.
func TestARepairAsksAsWhoBeganItWhenThereIsNoBrowserAnyMore(t *testing.T) {
	long := "ada <ada@shop.example>\n" + strings.Repeat("é", limits.MaxWhoBytes)
	kept := ("ada <ada@shop.example>" + strings.Repeat("é", limits.MaxWhoBytes))[:limits.MaxWhoBytes]
	dir := t.TempDir()
	options := engine.Options{
		Dir: dir, Workflows: fstest.MapFS{"trip.yaml": {Data: []byte(tripFile)}}, Agents: []agent.Handler{shop(nil)}, Logger: slog.New(slog.DiscardHandler),
		Caller: func(r *http.Request) string { return r.Context().Value(userKey{}).(string) },
	}
	open := func() (*world, func()) {
		eng, stop := running(t, options)
		server := httptest.NewServer(http.StripPrefix("/makegood", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			eng.Handler().ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), userKey{}, long)))
		})))
		return &world{Engine: eng, t: t, url: server.URL + "/makegood/"}, func() { server.Close(); stop() }
	}
	w, stop := open()
	var ids []string
	for i := range 3 {
		ids = append(ids, fmt.Sprintf("t-%d", i))
		w.submit(ids[i], `{"fail":"charge"}`, true)
	}
	form := w.get(w.get("errors").link(t, "repair?ask=resubmit")).form()
	form.Set("rate", "1000")
	w.through(w.post("repairs", form).at).wants(t, "3 granted", "by <b>ada &lt;ada@shop.example&gt;é")
	w.get("errors").wants(t, `by ada &lt;ada@shop.example&gt;é`)
	for _, id := range ids {
		job, err := w.Wait(t.Context(), id)
		if err != nil || job.RequestedBy == nil || *job.RequestedBy != kept {
			t.Errorf("job %s was asked by %v, %v, want %q", id, job.RequestedBy, err, kept)
		}
	}
	stop()

	// What an engine leaves that was killed after a repair had begun; one of a release before says nothing of who began it.
	orders, err := bulk.Open(dead{}, filepath.Join(dir, bulk.Folder), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]string{"repair-mine": "grace", "repair-old": ""} {
		o := bulk.Order{Name: name, Says: "trip", Verb: makegood.VerbResubmit, By: by, PerSecond: 1000, BeganAt: time.Now(), Jobs: ids[:1]}
		if by == "" {
			o.Jobs = ids[1:2]
		}
		if _, err := orders.Begin(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := orders.Close(); err != nil {
		t.Fatal(err)
	}
	w, stop = open()
	defer stop()
	for _, c := range []struct{ id, want string }{{ids[0], "grace"}, {ids[1], "local"}} {
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			job, err := w.Get(t.Context(), c.id)
			if err == nil && job.RequestedBy != nil && *job.RequestedBy == c.want {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("job %s was asked by %v, %v, want %s", c.id, job.RequestedBy, err, c.want)
			}
		}
	}
}

// Who asks is named in every request of a repair, so a name that a request may not have begins none.
func TestARepairIsNotBegunByANameThatNoRequestMayHave(t *testing.T) {
	k := bulk.New(dead{}, slog.New(slog.DiscardHandler))
	defer k.Close()
	for _, by := range []string{"a\nb", strings.Repeat("x", limits.MaxWhoBytes+1)} {
		_, err := k.Begin(bulk.Order{Name: "r", Verb: makegood.VerbResubmit, By: by, PerSecond: 1, Jobs: []string{"j"}})
		if _, invalid := err.(*api.InvalidError); !invalid {
			t.Errorf("by %.20q: got %v, want it refused", by, err)
		}
	}
}
