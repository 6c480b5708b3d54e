package filepayload

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestStore(t *testing.T) {
	payloadtest.Run(t, func(t *testing.T) payloadtest.Harness {
		s := open(t, filepath.Join(t.TempDir(), Folder))
		change := func(how func(text []byte) []byte) func(string, makegood.Payload) {
			return func(job string, p makegood.Payload) {
				path := s.path(payload.Place{Job: job, By: p.By}, p.SHA256)
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, how(text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		return payloadtest.Harness{
			Store: s, Heap: 16 << 20,
			Damage:   change(func(text []byte) []byte { text[len(text)/2] ^= 1; return text }),
			Truncate: change(func(text []byte) []byte { return text[:len(text)-1] }),
		}
	})
}

func write(t *testing.T, s *Store, job, text string) makegood.Payload {
	t.Helper()
	w, err := s.Write(t.Context(), payload.Place{Job: job}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return makegood.Payload{SHA256: w.SHA256, Bytes: w.Bytes}
}

func read(t *testing.T, s *Store, job string, p makegood.Payload) (string, error) {
	t.Helper()
	r, err := s.Open(t.Context(), job, p, 0, -1)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

// Each piece is bound to its file, its place and its end: what was moved about is found in a part, too, where no hash helps.
func TestAPieceInAnotherPlaceIsFound(t *testing.T) {
	s := open(t, t.TempDir())
	value := strings.Repeat("a", pieceBytes) + strings.Repeat("b", pieceBytes) + "c"
	p := write(t, s, "one", value)
	other := write(t, s, "two", value)
	path := s.path(payload.Place{Job: "one"}, p.SHA256)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	piece := func(i int) []byte { return whole[header+i*(pieceBytes+tagBytes):][:pieceBytes+tagBytes] }
	swapped := append([]byte{}, whole[:header]...)
	swapped = append(append(append(swapped, piece(1)...), piece(0)...), whole[header+2*(pieceBytes+tagBytes):]...)
	another, err := os.ReadFile(s.path(payload.Place{Job: "two"}, other.SHA256))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"swapped": swapped, "another job's": another} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), "one", p, 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); !errors.Is(err, payload.ErrAltered) {
			t.Errorf("%s: got %q, %v, want %v", name, got, err, payload.ErrAltered)
		}
		_ = r.Close()
	}
}

// Nothing of what was written can be found in the folder.
func TestTheFilesAreEncrypted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	write(t, s, "job", strings.Repeat("a secret of the customer ", 10_000))
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "secret") {
			t.Errorf("%s has it in the clear", path)
		}
		if info, infoErr := entry.Info(); infoErr == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v, want 0600", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasBeingWrittenGoesWithTheNextOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	p := write(t, s, "job", "whole")
	// As a process leaves it that was killed in the middle.
	if err := os.WriteFile(filepath.Join(dir, incoming, "123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if left, err := os.ReadDir(filepath.Join(dir, incoming)); len(left) != 0 || err != nil {
		t.Errorf("got %v, %v, want nothing", left, err)
	}
	if text, err := read(t, again, "job", p); text != "whole" || err != nil {
		t.Errorf("got %q, %v, want whole", text, err)
	}
}

func TestAFolderWhoseKeyIsGoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, open(t, dir), "job", "x")
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "its key is gone") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "has 5 bytes, want 32") {
		t.Errorf("got %v", err)
	}
}

// A job expires while another of its id, with the same content, has begun: written before the old one's files are dropped, or
// kept, the new one's stay.
func TestDropLeavesWhatIsYounger(t *testing.T) {
	s := open(t, t.TempDir())
	clock := time.Now()
	s.now = func() time.Time { return clock }
	kept, written, old := write(t, s, "job", "kept"), write(t, s, "job", "written"), write(t, s, "job", "old")
	for _, p := range []makegood.Payload{kept, written, old} {
		age(t, s, "job", p, clock.Add(-48*time.Hour))
	}
	write(t, s, "job", "written")
	if err := s.Keep(t.Context(), "job", kept); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop(t.Context(), "job", clock.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[makegood.Payload]error{kept: nil, written: nil, old: payload.ErrNotFound} {
		if err := s.Keep(t.Context(), "job", p); !errors.Is(err, want) {
			t.Errorf("%v: got %v, want %v", p, err, want)
		}
	}
	if err := s.Drop(t.Context(), "job", clock.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, folderOf("job"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder is there still: %v", err)
	}
}

// age makes a payload look as if it was written or kept last at a time.
func age(t *testing.T, s *Store, job string, p makegood.Payload, at time.Time) {
	t.Helper()
	if err := os.Chtimes(s.path(payload.Place{Job: job, By: p.By}, p.SHA256), at, at); err != nil {
		t.Fatal(err)
	}
}

func TestCollectTakesWhatIsOldAndNobodys(t *testing.T) {
	s := open(t, t.TempDir())
	clock := time.Now()
	s.now = func() time.Time { return clock }
	old := clock.Add(-limits.KeepPayload - time.Hour)
	orphan, jobs, young := write(t, s, "orphan", "x"), write(t, s, "there", "x"), write(t, s, "young", "x")
	late := write(t, s, "late", "x")
	age(t, s, "orphan", orphan, old)
	age(t, s, "there", jobs, old)
	age(t, s, "late", late, old)
	known := func(_ context.Context, job string) (bool, error) {
		if job == "young" {
			t.Error("asked for a job whose payload is young")
		}
		if job == "late" {
			// Its submission comes just now: it keeps its payload, and then stores its job.
			if err := s.Keep(t.Context(), "late", late); err != nil {
				t.Errorf("keep: %v", err)
			}
		}
		return job == "there", nil
	}
	if more, err := s.Collect(t.Context(), known); more || err != nil {
		t.Fatalf("got %v, %v", more, err)
	}
	for job, want := range map[string]error{"orphan": payload.ErrNotFound, "there": nil, "young": nil, "late": nil} {
		if err := s.Keep(t.Context(), job, map[string]makegood.Payload{"orphan": orphan, "there": jobs, "young": young, "late": late}[job]); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", job, err, want)
		}
	}
}

// A store that does not answer whether a job is there takes nothing.
func TestCollectTakesNothingWithoutAnAnswer(t *testing.T) {
	s := open(t, t.TempDir())
	p := write(t, s, "job", "x")
	age(t, s, "job", p, time.Now().Add(-2*limits.KeepPayload))
	down := errors.New("down")
	if _, err := s.Collect(t.Context(), func(context.Context, string) (bool, error) { return false, down }); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
	if err := s.Keep(t.Context(), "job", p); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// A disk that is full, here a limit of the process on the size of files, is an error, and leaves nothing.
func TestAFullDiskLeavesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	full := io.MultiReader(strings.NewReader(strings.Repeat("x", pieceBytes)), failing{syscall.ENOSPC})
	if _, err := s.Write(t.Context(), payload.Place{Job: "job"}, full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want %v", err, syscall.ENOSPC)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, incoming)); len(left) != 0 || err != nil {
		t.Errorf("got %v, %v, want nothing", left, err)
	}
}

type failing struct{ with error }

func (f failing) Read([]byte) (int, error) { return 0, f.with }

func TestTheFolderOfAJobNamesItAndNoOther(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "A", "a.b", strings.Repeat("x", 128), "-", ":", "incoming", "key"} {
		folder := folderOf(id)
		if other, there := seen[strings.ToLower(folder)]; there || len(folder) > 255 || folder == incoming || folder == keyFile {
			t.Errorf("%q: folder %q, as of %q", id, folder, other)
		}
		seen[strings.ToLower(folder)] = id
		if back, is := jobOf(folder); back != id || !is {
			t.Errorf("%q came back as %q, %v", id, back, is)
		}
	}
	for _, folder := range []string{incoming, keyFile, "..", "lost+found"} {
		if id, is := jobOf(folder); is {
			t.Errorf("%q was taken for the folder of %q", folder, id)
		}
	}
}
