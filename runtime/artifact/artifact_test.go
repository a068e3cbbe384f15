package artifact

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// origin is a server of one file that changes.
type origin struct {
	*httptest.Server

	mu       sync.Mutex
	content  string
	asked    int // how often
	moved    int // how often the file was sent
	failing  int // how many answers are a 503 yet
	uploaded []byte
	header   http.Header
}

func newOrigin(t *testing.T) *origin {
	o := &origin{content: "one"}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	if o.failing > 0 {
		o.failing--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodPost {
		o.uploaded, _ = io.ReadAll(r.Body)
		o.header = r.Header.Clone()
		return
	}
	if r.URL.Path == "/none" {
		http.NotFound(w, r)
		return
	}
	tag := fmt.Sprintf("%q", o.content)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	o.moved++
	fmt.Fprint(w, o.content)
}

func newStore(t *testing.T, limit int64) *Store {
	t.Helper()
	s, err := New(Config{Dir: filepath.Join(t.TempDir(), "artifacts"), MaxBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantFetch fetches and checks the content, and whether it was moved.
func wantFetch(t *testing.T, s *Store, from Source, content string, cached bool) {
	t.Helper()
	f, err := s.Fetch(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	got, err := os.ReadFile(f.Path)
	if err != nil || string(got) != content || f.Cached != cached || f.Size != int64(len(content)) {
		t.Errorf("got %q, %+v, %v; want %q, cached %t", got, f, err, content, cached)
	}
}

func TestFetchCaches(t *testing.T) {
	o, s := newOrigin(t), newStore(t, 0)
	from := Source{URL: o.URL, CacheKey: "key"}
	wantFetch(t, s, Source{URL: o.URL}, "one", false)
	wantFetch(t, s, Source{URL: o.URL}, "one", false)
	wantFetch(t, s, from, "one", false)
	wantFetch(t, s, from, "one", true)
	o.content = "two"
	wantFetch(t, s, from, "two", false)
	o.failing = 2
	wantFetch(t, s, from, "two", true)
	if o.moved != 4 {
		t.Errorf("got the file sent %d times; want 4", o.moved)
	}
	again, err := New(Config{Dir: s.dir}) // another daemon's
	if err != nil {
		t.Fatal(err)
	}
	wantFetch(t, again, from, "two", true)
	if left, err := filepath.Glob(filepath.Join(s.dir, temporary+"*")); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left; want nothing", left, err)
	}
}

// Waiting for one archive blocks no request for another.
func TestWaitingTakesNoTurn(t *testing.T) {
	o, s := newOrigin(t), newStore(t, 0)
	asked, answer := make(chan bool, 1), make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- true
		<-answer
		fmt.Fprint(w, "slow")
	}))
	defer slow.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	from := Source{URL: slow.URL, CacheKey: "slow", Algorithm: "sha256", Value: fmt.Sprintf("%x", sha256.Sum256([]byte("slow")))}
	for range concurrent {
		all.Go(func() {
			f, err := s.Fetch(t.Context(), from)
			if err != nil {
				t.Error(err)
			}
			f.Release()
		})
	}
	<-asked
	gone, leave := context.WithCancel(ctx)
	leave()
	if _, err := s.Fetch(gone, from); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v of one who left; want that", err)
	}
	f, err := s.Fetch(ctx, Source{URL: o.URL, CacheKey: "other"})
	if err != nil {
		t.Errorf("another archive: %v", err)
	}
	f.Release()
	close(answer)
	all.Wait()
	if len(s.keys) > 0 {
		t.Errorf("%d keys are left; want none", len(s.keys))
	}
}

func TestFetchChecks(t *testing.T) {
	o, s := newOrigin(t), newStore(t, 0)
	sum := sha512.Sum512([]byte("one"))
	good := Source{URL: o.URL, Algorithm: "sha512", Value: strings.ToUpper(hex.EncodeToString(sum[:])), CacheKey: "sum"}
	wantFetch(t, s, good, "one", false)
	asked := o.asked
	wantFetch(t, s, good, "one", true)
	if o.asked != asked {
		t.Error("asked a server for what a checksum proves")
	}
	for name, from := range map[string]Source{
		"the md5 checksum is f97c5d29941bfb1b2fdab0874906ab82, not 00": {URL: o.URL, Algorithm: "md5", Value: "00"},
		`checksum algorithm "crc32" is none of`:                        {URL: o.URL, Algorithm: "crc32", Value: "00"},
		`checksum algorithm "" is none of`:                             {URL: o.URL, Value: "00"},
		"source is not an http or https URL":                           {URL: "file:///etc/passwd"},
		"the server answers 404 Not Found":                             {URL: o.URL + "/none", CacheKey: "none"},
	} {
		f, err := s.Fetch(t.Context(), from)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %+v, %v; want %q", f, err, name)
		}
	}
}

func TestStoreIsBounded(t *testing.T) {
	o, s := newOrigin(t), newStore(t, 10)
	for n := range 5 {
		o.content = strings.Repeat(fmt.Sprint(n), 4)
		wantFetch(t, s, Source{URL: o.URL, CacheKey: fmt.Sprint(n)}, o.content, false)
		data, _ := s.names(fmt.Sprint(n))
		at := time.Now().Add(time.Duration(n-10) * time.Minute)
		if err := os.Chtimes(data, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(s.dir, "*.data")); err != nil || len(kept) != 2 {
		t.Errorf("got %v, %v; want the last two", kept, err)
	}
	o.content = strings.Repeat("x", 11)
	if _, err := s.Fetch(t.Context(), Source{URL: o.URL}); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("got %v; want it refused", err)
	}
}

func TestUpload(t *testing.T) {
	o, s := newOrigin(t), newStore(t, 0)
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o.failing = 1
	if err := s.Upload(t.Context(), o.URL, f, 1000); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 1000)
	if _, err := f.ReadAt(want, 0); err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum(want)
	if !bytes.Equal(o.uploaded, want) || o.header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("got %d bytes, %v; want the file and its MD5", len(o.uploaded), o.header)
	}
	o.failing = 9
	if err := s.Upload(t.Context(), o.URL, f, 1); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v; want the server's answer", err)
	}
}
