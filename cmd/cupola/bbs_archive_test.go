package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// servedArchive is an archive with one file, "f".
type servedArchive struct {
	url, sum string
	asked    atomic.Int32
}

func serveArchive(t testing.TB, content string) *servedArchive {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: int64(len(content))})
	_, fault := io.WriteString(w, content)
	if err := errors.Join(err, fault, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	a := &servedArchive{sum: hex.EncodeToString(sum[:])}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		_, _ = w.Write(b.Bytes())
	}))
	t.Cleanup(srv.Close)
	a.url = srv.URL
	return a
}
