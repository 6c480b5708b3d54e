package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A room that nobody points out is one that nobody finds.
func TestEveryRoomIsInTheArchitecture(t *testing.T) {
	text := read(t, "docs/architecture.md")
	rooms, err := filepath.Glob("../../internal/*")
	if err != nil || len(rooms) == 0 {
		t.Fatalf("got %d rooms, %v", len(rooms), err)
	}
	for _, room := range rooms {
		info, err := os.Stat(room)
		if err != nil {
			t.Fatal(err)
		}
		if name := "internal/" + filepath.Base(room); info.IsDir() && !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, name+" ") {
			t.Errorf("docs/architecture.md does not say what %s is for", name)
		}
	}
}
