package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood/internal/plain"
)

//go:embed templates/*.html
var templates embed.FS

// shell is the layout with the "main" of a view in it.
type shell struct{ *template.Template }

// parse reads the templates of a view. It panics where they are none: a test would have seen it.
func parse(name string) shell {
	return shell{template.Must(template.New("layout.html").Funcs(words()).ParseFS(templates, "templates/layout.html", "templates/parts.html", "templates/"+name))}
}

// frame is the dot of every template.
type frame struct {
	// Root leads from this page to where the page is mounted: "./", "../".
	Root string
	// Title is the title of the window, Where the engine or stack that is shown.
	Title, Where string
	Navigation   []link
	Visitor      Visitor
	// Waiting is how many jobs wait for a person, as far as that is known.
	Waiting int
	// Path is the path of the view, with its query, for live updates. Regions: there are any.
	Path    string
	Regions bool
	// Style, Script and Icon are the names of the assets, with their versions.
	Style, Script, Icon string
	Now                 time.Time
	// View is the result of the view's load.
	View any
}

// frame adds the parts that all views share.
func (p *Page) frame(r *http.Request, v view, data any) *frame {
	f := &frame{
		Root: rootOf(r.URL.Path), Title: v.title, Where: p.Where, Navigation: navigationOf(v.nav), Visitor: p.Visitor(r), Waiting: p.waiting(r.Context()),
		Path: r.URL.RequestURI(), Regions: len(v.regions) > 0 && r.Method == http.MethodGet,
		Style: p.assets["page.css"].versioned(), Script: p.assets["page.js"].versioned(), Icon: p.assets["icon.svg"].versioned(),
		Now: p.Now().UTC(), View: data,
	}
	if named, is := data.(titled); is {
		f.Title = named.Title()
	}
	return f
}

// write answers with a page.
func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, s shell, f *frame) {
	var page bytes.Buffer
	if err := s.Execute(&page, f); err != nil {
		p.Logger.ErrorContext(r.Context(), "page could not be written", "path", r.URL.Path, "error", err)
		http.Error(w, fmt.Sprintf("this page cannot be written; the log of the process says why (%s)", r.URL.Path), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	writeText(w, r, status, plain.Escaped(page.Bytes()))
}
