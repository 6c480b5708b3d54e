package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
)

//go:embed page.css
var style []byte

//go:embed page.js
var script []byte

// icon stands on the tab of the browser, which would ask for one by itself, and be told that there is none.
//
//go:embed icon.svg
var icon []byte

// asset is a file that every page needs.
type asset struct {
	name, kind, version string
	body                []byte
}

// assets are all assets, by name.
type assets map[string]asset

func readAssets() assets {
	all := assets{}
	for _, a := range []asset{
		{name: "page.css", kind: "text/css; charset=utf-8", body: style},
		{name: "page.js", kind: "text/javascript; charset=utf-8", body: script},
		{name: "icon.svg", kind: "image/svg+xml", body: icon},
	} {
		sum := sha256.Sum256(a.body)
		a.version = hex.EncodeToString(sum[:6])
		all[a.name] = a
	}
	return all
}

// versioned is the name with the version: another one is another address.
func (a asset) versioned() string { return a.name + "?" + a.version }

// serve answers with the asset, which a browser may keep under its version.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.URL.RawQuery == a.version {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	h.Set("Content-Type", a.kind)
	writeText(w, r, http.StatusOK, a.body)
}
