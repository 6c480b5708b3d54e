//go:build browser

package browser_test

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// pictures lets TestPictures write them anew; make screenshots does.
var pictures = flag.Bool("pictures", false, "write docs/images")

const (
	// pictureFolder is where the pictures of README and docs are.
	pictureFolder = "../../../docs/images"
	// maxPicture is how large one may be, in bytes.
	maxPicture = 100 << 10
)

// picture is one of them: what is seen of a view, in a look.
type picture struct {
	name, path string
	look       look
}

// album are all pictures.
func album() []picture {
	screen, phone := look{width: 1280, height: 860}, look{width: 390, height: 844, touch: true, dark: true}
	return []picture{
		{"jobs", "/", screen},
		{"jobs-phone", "/", phone},
		{"job", "/jobs/t-20481", screen},
		{"errors", "/errors", screen},
		{"agents", "/agents", screen},
		{"schedules", "/schedules", screen},
		{"workflow", "/workflows/trip", screen},
	}
}

// shoot takes a picture of what is seen in the window.
func (w *window) shoot() []byte {
	w.t.Helper()
	shot := call(w, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	seen, err := png.Decode(bytes.NewReader(shot.Data))
	w.do(err)
	var small bytes.Buffer
	w.do((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduced(seen)))
	return small.Bytes()
}

// reduced is a picture in 256 of its colours, each other one replaced by the nearest: a third of the bytes, and nobody sees
// it in what is mostly flat.
func reduced(from image.Image) image.Image {
	often := map[color.RGBA]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			often[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(often[b], often[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{}
	for _, c := range keptColours(most) {
		palette = append(palette, c)
	}
	to := image.NewPaletted(from.Bounds(), palette)
	draw.Draw(to, to.Bounds(), from, from.Bounds().Min, draw.Src)
	return to
}

// keptColours are at most 256 of the colours of a picture, which come most frequent first: the most frequent of each region of
// the colour space (8 × 8 × 8 of them) before any second of a region. By frequency alone the many greys at the edges of the text
// would leave no place for the few points of a small sign, and amber would turn red.
func keptColours(most []color.RGBA) []color.RGBA {
	var first, others []color.RGBA
	seen := map[[3]uint8]bool{}
	for _, c := range most {
		region := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}
		if seen[region] {
			others = append(others, c)
			continue
		}
		seen[region] = true
		first = append(first, c)
	}
	kept := append(first, others...)
	return kept[:min(256, len(kept))]
}

// The pictures of README and docs can be made of the views as they are, and are small. Whether they look well, a person says.
func TestPictures(t *testing.T) {
	url := staged(t)
	for _, p := range album() {
		t.Run(p.name, func(t *testing.T) {
			w := newWindow(t, url)
			w.as(p.look)
			w.open(p.path)
			w.holds(`!document.body.dataset.live || document.getElementById("live").dataset.state === "live"`)
			shot := w.shoot()
			if len(shot) > maxPicture {
				t.Errorf("the picture has %d bytes, the limit is %d", len(shot), maxPicture)
			}
			file := filepath.Join(pictureFolder, p.name+".png")
			if *pictures {
				w.do(os.WriteFile(file, shot, 0o644))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%v: make screenshots makes it", err)
			}
		})
	}
}

// Each view is readable with all that a day brings to it.
func TestEachViewIsReadable(t *testing.T) {
	url := staged(t)
	for _, path := range []string{"/", "/errors", "/agents", "/schedules", "/schedules/new", "/workflows", "/workflows/trip"} {
		t.Run(path, func(t *testing.T) {
			w := newWindow(t, url)
			w.open(path)
			w.readable()
		})
	}
}
