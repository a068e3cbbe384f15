package static

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// hidden are the files of an app that configure its push and are not part of
// the site; the list is the staticfile buildpack's.
var hidden = []string{"Staticfile", "Staticfile.auth", "manifest.yml", "stackato.yml", "Procfile"}

// indexes are tried in a directory, in nginx's order in that buildpack.
var indexes = []string{"index.html", "index.htm", "Default.htm"}

// handler serves one directory. Nothing outside it is reachable, also not by
// a symbolic link.
type handler struct {
	config Config
	root   *os.Root
	hides  bool // the root is the app's own directory

	squeezed compressedFiles
}

// newHandler opens the directory to serve, config.Root below app. Close it.
func newHandler(config Config, app string) (*handler, error) {
	root, err := os.OpenRoot(app)
	if err != nil {
		return nil, err
	}
	name := filepath.Clean(filepath.Join(".", config.Root))
	if name == "." {
		return &handler{config: config, root: root, hides: true}, nil
	}
	defer func() { _ = root.Close() }()
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &handler{config: config, root: sub}, nil
}

// Close releases the directory.
func (h *handler) Close() error { return h.root.Close() }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.config.ForceHTTPS && r.Header.Get("X-Forwarded-Proto") != "https" {
		redirectHTTPS(w, r)
		return
	}
	if h.config.StrictSecurity != "" {
		w.Header().Set("Strict-Transport-Security", h.config.StrictSecurity)
	}
	if !h.authorized(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="Restricted"`)
		h.fail(w, r, http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.fail(w, r, http.StatusMethodNotAllowed)
		return
	}
	h.serve(w, r, r.URL.Path)
}

// serve answers with the file, or the directory's index, at the URL's path.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, urlPath string) {
	name := strings.TrimPrefix(path.Clean("/"+urlPath), "/")
	if name == "" {
		name = "."
	}
	info, err := h.stat(name)
	switch {
	case err != nil:
		h.missing(w, r, err)
	case info.IsDir() && !strings.HasSuffix(urlPath, "/"):
		target := url.URL{Path: "/" + name + "/", RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, target.String(), http.StatusMovedPermanently)
	case info.IsDir():
		h.serveDirectory(w, r, name)
	case strings.HasSuffix(urlPath, "/"):
		h.missing(w, r, fs.ErrNotExist)
	default:
		h.serveFile(w, r, name)
	}
}

// stat finds what may be served at name.
func (h *handler) stat(name string) (fs.FileInfo, error) {
	parts := strings.Split(name, "/")
	if h.hides && slices.Contains(hidden, parts[0]) {
		return nil, fs.ErrNotExist
	}
	for i, part := range parts {
		dot := strings.HasPrefix(part, ".") && part != "." && (i > 0 || part != ".well-known")
		if dot && !h.config.DotFiles {
			return nil, fs.ErrNotExist
		}
	}
	info, err := h.root.Stat(name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return info, err
}

func (h *handler) serveDirectory(w http.ResponseWriter, r *http.Request, name string) {
	for _, index := range indexes {
		file := path.Join(name, index)
		if info, err := h.stat(file); err == nil && !info.IsDir() {
			h.serveFile(w, r, file)
			return
		}
	}
	if h.config.Listing {
		h.list(w, r, name)
		return
	}
	h.fail(w, r, http.StatusForbidden)
}

// missing answers a request for what is not there.
func (h *handler) missing(w http.ResponseWriter, r *http.Request, err error) {
	if h.config.PushState {
		if _, err := h.stat(indexes[0]); err == nil {
			h.serveFile(w, r, indexes[0])
			return
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		h.fail(w, r, http.StatusForbidden)
		return
	}
	h.fail(w, r, http.StatusNotFound)
}

func redirectHTTPS(w http.ResponseWriter, r *http.Request) {
	host := r.Header.Get("X-Forwarded-Host")
	if host == "" {
		host = r.Host
	}
	target := "https://" + host + r.Header.Get("X-Forwarded-Prefix") + r.URL.RequestURI()
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusMovedPermanently)
}
