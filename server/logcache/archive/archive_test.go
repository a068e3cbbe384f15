package archive

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// world is an archive with a clock.
type world struct {
	*Archive
	now time.Time
}

func open(t testing.TB, c Config) *world {
	t.Helper()
	w := &world{now: time.Unix(1_000_000, 0)}
	c.Log, c.Now = slog.New(slog.NewTextHandler(t.Output(), nil)), func() time.Time { return w.now }
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	if c.MaxAge == 0 {
		c.MaxAge = 24 * time.Hour
	}
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Archive = a
	return w
}

// at is a time before now, in seconds.
func (w *world) at(ago int) time.Time { return w.now.Add(-time.Duration(ago) * time.Second) }

func (w *world) read(t *testing.T, source, text string) (all []string) {
	t.Helper()
	for _, f := range w.Files(source, time.Unix(0, 0), w.now.Add(time.Hour)) {
		b, err := f.Read(text)
		if err != nil {
			t.Error(err)
		}
		if b != nil {
			all = append(all, string(b))
		}
	}
	return all
}

// TestSegmentsAreKept reads what was added, the newest first, after a start, too.
func TestSegmentsAreKept(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	w.Add("a", []byte("one"), w.at(30), w.at(20))
	w.Add("a", []byte("two, Größe"), w.at(20), w.at(10))
	w.Add("a", []byte("one"), w.at(30), w.at(20)) // a second time
	w.Add("../b\x00", []byte("three"), w.at(9), w.at(8))
	for range 2 {
		if got := fmt.Sprint(w.read(t, "a", "")); got != "[two, Größe one]" {
			t.Errorf("got %s", got)
		}
		if got := fmt.Sprint(w.read(t, "a", "TWO"), w.read(t, "a", "größe"), w.read(t, "a", "GRÖSSE?"), w.read(t, "../b\x00", "")); got != "[[two, Größe] [two, Größe] [] [three]]" && got != "[two, Größe] [two, Größe] [] [three]" {
			t.Errorf("got %s", got)
		}
		if n := len(w.Files("a", w.at(25), w.at(20))); n != 1 {
			t.Errorf("got %d files of a time", n)
		}
		w = open(t, Config{Dir: dir})
	}
	w.Delete("a")
	if got := w.Sources(); len(got) != 1 || got[0] != "../b\x00" {
		t.Errorf("got the sources %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 1 {
		t.Errorf("got the files %v", left)
	}
}

// TestFilesThatAreNotOurs are deleted at a start, and so is what a killed daemon left half.
func TestFilesThatAreNotOurs(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	w.Add("a", []byte("one"), w.at(30), w.at(20))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{files[0] + ".new": whole[:100], filepath.Join(filepath.Dir(files[0]), "1-2.zst"): whole[:20], filepath.Join(filepath.Dir(files[0]), "x"): nil,
		filepath.Join(filepath.Dir(files[0]), "01-2.zst"): whole, filepath.Join(dir, "x"): nil} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w = open(t, Config{Dir: dir})
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 1 || left[0] != files[0] {
		t.Errorf("got the files %v; want %v alone", left, files)
	}
	if err := os.WriteFile(files[0], whole[:len(whole)-2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Files("a", w.at(100), w.now)[0].Read(""); err == nil {
		t.Error("a damaged file was read")
	}
}

// TestLimitsChange makes room smaller, and the time shorter, while the archive is used.
func TestLimitsChange(t *testing.T) {
	w := open(t, Config{Dir: t.TempDir()})
	for n := range 10 {
		b := make([]byte, 5000)
		r := rand.NewChaCha8([32]byte{byte(n)})
		_, _ = r.Read(b)
		w.Add("a", b, w.at(1000-100*n), w.at(999-100*n))
	}
	if w.SetLimits(60_000, 24*time.Hour); w.bytes > 60_000 || len(w.read(t, "a", "")) != 4 {
		t.Errorf("got %d bytes in %d files", w.bytes, len(w.read(t, "a", "")))
	}
	if w.SetLimits(60_000, 2*time.Minute); len(w.read(t, "a", "")) != 1 {
		t.Errorf("got %d files", len(w.read(t, "a", "")))
	}
	if w.Add("b", []byte("old"), w.at(400), w.at(300)); len(w.read(t, "b", "")) != 0 {
		t.Error("lines beyond the time were kept")
	}
}

// TestBounds makes a source that writes much lose its oldest lines, while one that writes little keeps its own, and
// lines end with their age.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir, MaxBytes: 200_000, MaxAge: time.Hour})
	noise := func() []byte {
		b := make([]byte, 5000)
		r := rand.NewChaCha8([32]byte{})
		_, _ = r.Read(b)
		return b
	}
	w.Add("quiet", []byte("a word"), w.at(500), w.at(499))
	for n := range 50 {
		w.Add("loud", noise(), w.at(400-n), w.at(399-n))
	}
	if w.bytes > w.MaxBytes || len(w.read(t, "quiet", "")) != 1 || len(w.read(t, "loud", "")) < 5 {
		t.Errorf("got %d bytes, %d and %d files", w.bytes, len(w.read(t, "quiet", "")), len(w.read(t, "loud", "")))
	}
	var sum int64
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum != w.bytes {
		t.Errorf("there are %d bytes; %d are counted", sum, w.bytes)
	}
	w.now = w.now.Add(time.Hour)
	w.Add("quiet", []byte("new"), w.at(1), w.at(0))
	if got := w.read(t, "quiet", ""); len(got) != 1 || got[0] != "new" || len(w.Sources()) != 1 {
		t.Errorf("got %q of %q", got, w.Sources())
	}
	w.Add("late", []byte("old"), w.at(9000), w.at(8000))
	if len(w.Sources()) != 1 {
		t.Error("lines that are too old were kept")
	}
}

// TestFilesAreOfZstd reads a file with the program.
func TestFilesAreOfZstd(t *testing.T) {
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("zstd is not installed")
	}
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	text := strings.Repeat("a line\n", 1000)
	w.Add("a", []byte(text), w.at(2), w.at(1))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if out, err := exec.CommandContext(t.Context(), "zstd", "-dc", files[0]).Output(); err != nil || string(out) != text {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}

func FuzzHeader(f *testing.F) {
	a := open(f, Config{Dir: f.TempDir()})
	whole, err := a.encode("source", []byte("a line"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		if source, has, err := header(bytes.NewReader(b)); err == nil && (len(source) > maxName || len(has) != filterBytes) {
			t.Errorf("got %d bytes and a filter of %d", len(source), len(has))
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add("2026-11-28 ERROR größe", 3, 9)
	f.Fuzz(func(t *testing.T, text string, from, length int) {
		if from < 0 || length < 0 || from > len(text) || length > len(text)-from {
			return
		}
		has := make(filter, filterBytes)
		has.add([]byte(text))
		if part := text[from : from+length]; !has.mayHave(part) {
			t.Errorf("%q is in %q", part, text)
		}
	})
}
