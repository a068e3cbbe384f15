package static

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// serveFile answers with a file: conditional and range requests as they ask,
// compressed when the client takes it and it is worth it.
func (h *handler) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	f, info, err := h.open(name)
	if err != nil {
		h.missing(w, r, err)
		return
	}
	defer f.Close()
	header := w.Header()
	kind := contentType(name)
	header.Set("Content-Type", kind)
	tag := fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
	if !compressible(kind) {
		header.Set("Etag", strconv.Quote(tag))
		http.ServeContent(w, r, name, info.ModTime(), f)
		return
	}
	header.Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r) {
		header.Set("Etag", strconv.Quote(tag))
		http.ServeContent(w, r, name, info.ModTime(), f)
		return
	}
	if z, zinfo, err := h.open(name + ".gz"); err == nil {
		defer z.Close()
		header.Set("Content-Encoding", "gzip")
		header.Set("Etag", strconv.Quote(tag+"-gz"))
		http.ServeContent(w, r, name, zinfo.ModTime(), z)
		return
	}
	if small, ok := h.squeezed.get(name, tag, f, info.Size()); ok {
		header.Set("Content-Encoding", "gzip")
		header.Set("Etag", strconv.Quote(tag+"-gzip"))
		http.ServeContent(w, r, name, info.ModTime(), bytes.NewReader(small))
		return
	}
	header.Set("Etag", strconv.Quote(tag))
	http.ServeContent(w, r, name, info.ModTime(), f)
}

// open opens a regular file that may be served.
func (h *handler) open(name string) (*os.File, fs.FileInfo, error) {
	if _, err := h.stat(name); err != nil {
		return nil, nil, err
	}
	f, err := h.root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// list answers with a directory's names.
func (h *handler) list(w http.ResponseWriter, r *http.Request, name string) {
	entries, err := fs.ReadDir(h.root.FS(), name)
	if err != nil {
		h.missing(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	title := html.EscapeString("Index of " + path.Clean("/"+name))
	fmt.Fprintf(w, "<!doctype html>\n<title>%s</title>\n<h1>%s</h1>\n<ul>\n", title, title)
	for _, e := range entries {
		if _, err := h.stat(path.Join(name, e.Name())); err != nil {
			continue
		}
		label := e.Name()
		if e.IsDir() {
			label += "/"
		}
		link := url.URL{Path: label}
		fmt.Fprintf(w, "<li><a href=\"./%s\">%s</a></li>\n", html.EscapeString(link.EscapedPath()), html.EscapeString(label))
	}
	fmt.Fprint(w, "</ul>\n")
}

// fail answers with a status and the page the app has for it, if any.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, status int) {
	text := http.StatusText(status)
	for _, key := range []string{strconv.Itoa(status), strconv.Itoa(status/100) + "xx"} {
		page, ok := h.config.StatusPages[key]
		if !ok {
			continue
		}
		name := strings.TrimPrefix(path.Clean("/"+page), "/")
		f, _, err := h.open(name)
		if err != nil {
			continue
		}
		defer f.Close()
		w.Header().Set("Content-Type", contentType(name))
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.Copy(w, f)
		}
		return
	}
	http.Error(w, strconv.Itoa(status)+" "+text, status)
}

func compressible(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	return strings.HasPrefix(kind, "text/") || slices.Contains(compressed, kind)
}

// acceptsGzip reports whether the request takes a gzipped answer. A range is
// one of the file as it is, so such requests do not.
func acceptsGzip(r *http.Request) bool {
	if r.Header.Get("Range") != "" {
		return false
	}
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.TrimSpace(coding)
		if coding != "gzip" && coding != "*" {
			continue
		}
		q, found := strings.CutPrefix(strings.TrimSpace(params), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !found || err == nil && weight > 0
	}
	return false
}
