package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Entry is a line of a job's history: an event that did not simply go well, or that was asked for. Zero fields carry no
// information.
type Entry struct {
	At   time.Time          `json:"at"`
	Kind makegood.EntryKind `json:"kind"`
	// Step, Undo and Attempt name the subject; the whole job, if there is no Step.
	Step    string `json:"step,omitempty"`
	Undo    bool   `json:"undo,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// StartedAt is when the attempt was claimed, LockedBy its holder.
	StartedAt time.Time  `json:"startedAt,omitzero"`
	LockedBy  string     `json:"lockedBy,omitempty"`
	Error     *StepError `json:"error,omitempty"`
	// Failure says that it counts as a failure of the job, and as which; the first is 1.
	Failure int `json:"failure,omitempty"`
	// By is the name of the person or program that asked or answered, as the receiver knows it.
	By     string        `json:"by,omitempty"`
	Verb   makegood.Verb `json:"verb,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// State is the end that a job is wanted to have which turned, Round the one that begins.
	State makegood.ProcessState `json:"state,omitempty"`
	Round int                   `json:"round,omitempty"`
	// StartAt is the new start of a job that was rescheduled.
	StartAt time.Time `json:"startAt,omitzero"`
	// Definition is the one that a job was moved to, Input that it got another one.
	Definition string `json:"definition,omitempty"`
	Input      bool   `json:"input,omitempty"`
	// Timeout is what a job got that was edited: a duration, or "none".
	Timeout string `json:"timeout,omitempty"`
	// Concurrency and Tolerate are the new figures of a map that was edited, if there are new ones.
	Concurrency int                 `json:"concurrency,omitempty"`
	Tolerate    *makegood.Tolerance `json:"tolerate,omitempty"`
	// As is what a step was settled as.
	As makegood.StepState `json:"as,omitempty"`
	// Items is how many failed items of maps a redrive has done again, Indexes names them where it named them.
	Items   int     `json:"items,omitempty"`
	Indexes Indexes `json:"indexes,omitempty"`
}

// History is the head of a job's history. The entries are in pages, a page for each save that has some, and are kept
// beside the job. A page names the one before it, so a page that is neither on the chain from Head nor, among the first
// entries, on that from Firsts, did not happen: it was left by a save that was lost. Zero for a job that went well.
type History struct {
	// Count is how many entries there are, those that are not kept any more, too.
	Count int `json:"count"`
	// Head names the last page.
	Head string `json:"head"`
	// Firsts names the page with entry limits.MaxHistoryFirst, once there is one.
	Firsts string `json:"firsts,omitempty"`
}

// HistoryPrefix begins the keys of pages among those of payloads.
const HistoryPrefix = "history#"

// Page is what one save adds to a history. It is written before the save, under Key, and never changed.
type Page struct {
	Key  string
	Body json.RawMessage
}

// pageBody is a page as it is kept.
type pageBody struct {
	// First is the number of its first entry; the first of a job is 1.
	First int `json:"first"`
	// Before names the page before it.
	Before  string  `json:"before,omitempty"`
	Entries []Entry `json:"entries"`
}

const (
	// pageHash is how many bytes of the hash of a page stand in its name.
	pageHash = 12
	// pageDigits is how many digits the number of a first entry has, so that names are in the order of the entries.
	pageDigits = 8
)

// With returns the history with entries added, and the page that holds them. birth is the job's: no page of an earlier
// job of the same id is taken for one of this.
func (h History) With(birth string, entries []Entry) (History, Page) {
	body := pageBody{First: h.Count + 1, Before: h.Head, Entries: entries}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(body); err != nil {
		panic(fmt.Sprintf("job: entries that are no JSON: %v", err))
	}
	data := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	name := pageName(birth, body.First, len(entries), data)
	next := History{Count: h.Count + len(entries), Head: name, Firsts: h.Firsts}
	if next.Firsts == "" && next.Count >= limits.MaxHistoryFirst {
		next.Firsts = name
	}
	return next, Page{Key: HistoryPrefix + name, Body: data}
}

// HeadKey is the key of the last page; empty: there is none.
func (h History) HeadKey() string {
	if h.Head == "" {
		return ""
	}
	return HistoryPrefix + h.Head
}

// Between returns the entries between which none are kept: a page that begins after the first, and ends before the
// second, may be deleted. ok is false where all are kept.
func (h History) Between() (after, before int, ok bool) {
	first, n, ok := pageNumbers(h.Firsts)
	after, before = first+n-1, h.Count-limits.MaxHistoryLast+1
	return after, before, ok && after+1 < before
}

// Falls reports whether the page under a key lies wholly between two entries.
func Falls(key string, after, before int) bool {
	first, n, ok := pageNumbers(strings.TrimPrefix(key, HistoryPrefix))
	return ok && first > after && first+n-1 < before
}

// HistoryFrom is the least key that a page can have which begins with entry n or a later one.
func HistoryFrom(n int) string { return fmt.Sprintf("%s%0*d", HistoryPrefix, pageDigits, n) }

// pageName is FIRST+COUNT#HASH.
func pageName(birth string, first, n int, data []byte) string {
	sum := sha256.Sum256(append([]byte(birth+"\n"), data...))
	return fmt.Sprintf("%0*d+%d#%s", pageDigits, first, n, base64.RawURLEncoding.EncodeToString(sum[:pageHash]))
}

// pageNumbers reads the number of the first entry, and how many there are, from the name of a page.
func pageNumbers(name string) (first, n int, ok bool) {
	numbers, _, ok := strings.Cut(name, "#")
	if !ok {
		return 0, 0, false
	}
	a, b, ok := strings.Cut(numbers, "+")
	if !ok {
		return 0, 0, false
	}
	first, errFirst := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	return first, n, errFirst == nil && errN == nil && first > 0 && n > 0
}

// Numbered is an entry with its number; the first of a job is 1.
type Numbered struct {
	N int
	Entry
}

// Gap is where entries are not shown: From to To, both included.
type Gap struct {
	From, To int
	Why      string
}

// Why entries are not shown.
const (
	gapNotKept = "not kept"
	gapMissing = "missing"
	gapDamaged = "damaged"
)

// Read returns the entries of a history, oldest first, from the pages that are kept of the job. Where some are missing
// or cannot be read, it says so: a job is never hidden by its history.
func (h History) Read(birth string, pages map[string][]byte) (entries []Numbered, gaps []Gap) {
	firsts, after := reader{birth: birth, pages: pages}, 0
	if first, n, ok := pageNumbers(h.Firsts); ok && h.Firsts != h.Head {
		after = first + n - 1
		firsts.walk(h.Firsts, after, 0)
	}
	lasts, until := reader{birth: birth, pages: pages}, after
	_, before, between := h.Between()
	if between {
		until = before - 1
	}
	reached := lasts.walk(h.Head, h.Count, until)
	if between && reached > after && lasts.gap == nil {
		lasts.gap = &Gap{after + 1, reached, gapNotKept}
	}
	if lasts.gap != nil {
		lasts.gap.From = after + 1
	}
	for _, gap := range []*Gap{firsts.gap, lasts.gap} {
		if gap != nil {
			gaps = append(gaps, *gap)
		}
	}
	return append(firsts.entries, lasts.entries...), gaps
}

// reader reads a chain of pages, from its last to its first.
type reader struct {
	birth   string
	pages   map[string][]byte
	entries []Numbered
	// gap is where the chain breaks off, if it does.
	gap *Gap
}

// walk reads the chain that begins with the page of this name, which ends with entry last, back to entry after, and
// returns the number of the last entry that it has not read.
func (r *reader) walk(name string, last, after int) int {
	for last > after {
		data, found := r.pages[HistoryPrefix+name]
		if !found {
			r.gap = &Gap{1, last, gapMissing}
			return last
		}
		body, ok := readPage(r.birth, name, last, data)
		if !ok {
			r.gap = &Gap{1, last, gapDamaged}
			return last
		}
		page := make([]Numbered, len(body.Entries), len(body.Entries)+len(r.entries))
		for i, e := range body.Entries {
			page[i] = Numbered{body.First + i, e}
		}
		r.entries = append(page, r.entries...)
		last, name = body.First-1, body.Before
	}
	return last
}

// readPage reads a page, if it is the one of this name and its last entry has this number.
func readPage(birth, name string, last int, data []byte) (pageBody, bool) {
	var body pageBody
	if json.Unmarshal(data, &body) != nil || len(body.Entries) == 0 || body.First < 1 {
		return body, false
	}
	n := len(body.Entries)
	return body, body.First+n-1 == last && pageName(birth, body.First, n, data) == name
}
