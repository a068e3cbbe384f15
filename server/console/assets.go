package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// file is one file of web/dist.
type file struct {
	text       []byte
	compressed bool   // text is
	kind       string // media type
}

// mediaTypes are those of the files that the package web names. Package mime would read the machine's own tables, which lie
// in /usr/local, too, and wait for ever where that does not answer.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// indexPage is the page that shows every screen.
const indexPage = "index.html"

// readFiles reads web/dist: index.html and assets/NAME-HASH.EXT.gz.
func readFiles(assets fs.FS) (map[string]*file, error) {
	files := map[string]*file{}
	if assets == nil {
		return files, nil
	}
	err := fs.WalkDir(assets, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(assets, name)
		plain, compressed := strings.CutSuffix(name, ".gz")
		files[plain] = &file{text, compressed, mediaTypes[path.Ext(plain)]}
		return err
	})
	return files, err
}

// page serves the one page of the console, whatever its path: the page shows the
// screen that the path names.
func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	f := c.files[indexPage]
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if f == nil {
		http.Error(w, "This build of cupola has no web console.", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	f.serve(w, r)
}

// asset serves a file whose name changes with its content.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	f := c.files["assets/"+r.PathValue("name")]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", f.kind)
	if !f.compressed {
		_, _ = w.Write(f.text) // the client may be gone
		return
	}
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(f.text) // likewise
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(f.text))
	if err != nil {
		http.Error(w, "The file is damaged.", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, plain) //nolint:gosec // the build's own file
}
