package bbs

import (
	"archive/tar"
	"archive/zip"
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

	"cupola/server/bbs/bbspb"
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
	return serveBytes(t, b.Bytes())
}

// serveZip is one like serveArchive's, as a zip.
func serveZip(t testing.TB, content string) *servedArchive {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, content)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return serveBytes(t, b.Bytes())
}

func serveBytes(t testing.TB, content []byte) *servedArchive {
	sum := sha256.Sum256(content)
	a := &servedArchive{sum: hex.EncodeToString(sum[:])}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		_, _ = w.Write(content)
	}))
	t.Cleanup(srv.Close)
	a.url = srv.URL
	return a
}

// layer is the archive as an image layer.
func (a *servedArchive) layer(to string, kind bbspb.LayerType) *bbspb.ImageLayer {
	return &bbspb.ImageLayer{Name: "layer" + to, Url: a.url, DestinationPath: to, LayerType: kind, MediaType: bbspb.MediaType_MEDIA_TYPE_TGZ,
		DigestAlgorithm: bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256, DigestValue: a.sum}
}
