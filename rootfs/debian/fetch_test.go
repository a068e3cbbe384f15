package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func testFetcher(t *testing.T) *fetcher {
	return &fetcher{client: &http.Client{}, dir: t.TempDir(), wait: time.Microsecond}
}

// cutting serves content but breaks off after every n bytes. Without ranges it
// does so in the first answers only.
func cutting(content []byte, n int, ranges bool, sent *atomic.Int64) http.HandlerFunc {
	cuts := 3
	return func(w http.ResponseWriter, r *http.Request) {
		at := 0
		if ranges {
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
		}
		rest := content[at:]
		w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
		if at > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", at, len(content)-1, len(content)))
			w.WriteHeader(http.StatusPartialContent)
		}
		if cuts--; len(rest) > n && (ranges || cuts >= 0) {
			rest = rest[:n]
		}
		m, _ := w.Write(rest)
		sent.Add(int64(m))
		if len(rest) < len(content)-at {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

func TestFetchResumes(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for _, ranges := range []bool{true, false} {
		var sent, got atomic.Int64
		server := httptest.NewServer(cutting(content, 30_000, ranges, &sent))
		defer server.Close()
		f := testFetcher(t)
		f.got = func(n int64) { got.Add(n) }
		path, cached, err := f.file(t.Context(), digest{sum(content), int64(len(content))}, server.URL)
		if err != nil || cached {
			t.Fatalf("ranges %v: got %v, cached %v", ranges, err, cached)
		}
		if raw, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, content) {
			t.Errorf("ranges %v: got other content, %v", ranges, err)
		}
		server.Close() // the handler counts after it has written
		if ranges && sent.Load() != int64(len(content)) {
			t.Errorf("got %d bytes sent; want each byte once, %d", sent.Load(), len(content))
		}
	}
}

func TestFetchGivesUpOnAServerThatAlwaysBreaksOff(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 1000)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Length", "1000")
		w.Write(content[:500])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	_, _, err := testFetcher(t).file(t.Context(), digest{sum(content), 1000}, server.URL)
	if !errors.Is(err, io.ErrUnexpectedEOF) || asked.Load() > fetchTries+1 {
		t.Errorf("got %v after %d tries; want %v", err, asked.Load(), io.ErrUnexpectedEOF)
	}
}

func TestFetchGoesOnWithAPart(t *testing.T) {
	content := []byte("the whole file")
	d := digest{sum(content), int64(len(content))}
	for _, part := range []string{"the whole", "the whole file", "THE WHOLE", "the whole file and more"} {
		var sent atomic.Int64
		server := httptest.NewServer(cutting(content, 100, true, &sent))
		defer server.Close()
		f := testFetcher(t)
		if err := os.WriteFile(filepath.Join(f.dir, d.sha256+".part"), []byte(part), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := f.file(t.Context(), d, server.URL, server.URL)
		if err != nil {
			t.Errorf("%q: got %v; want the second URL to do", part, err)
		}
	}
}

func TestFetchGivesUp(t *testing.T) {
	var asked atomic.Int64
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(status)
	}))
	defer server.Close()
	f := testFetcher(t)
	_, _, err := f.file(t.Context(), digest{sum(nil), 1}, server.URL)
	if err == nil || !strings.Contains(err.Error(), "500") || asked.Load() != fetchTries {
		t.Errorf("got %v after %d tries; want %d", err, asked.Load(), fetchTries)
	}
	asked.Store(0)
	status = http.StatusNotFound
	if _, err = f.small(t.Context(), server.URL, 10); !errors.Is(err, errNotFound) || asked.Load() != 1 {
		t.Errorf("got %v after %d tries; want not found at once", err, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = f.small(ctx, server.URL, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want canceled", err)
	}
}

func TestFetchBoundsSmallDocuments(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 11)) }))
	defer server.Close()
	if _, err := testFetcher(t).small(t.Context(), server.URL, 10); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("got %v; want a bound of 10 bytes", err)
	}
}
