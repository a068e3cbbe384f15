package scp

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// copyOver copies by two ends of the protocol that talk to each other.
func copyOver(t *testing.T, source, sink []string) (sourceCode, sinkCode int) {
	t.Helper()
	toSink, fromSource := pipe(t)
	toSource, fromSink := pipe(t)
	done := make(chan int)
	go func() {
		code := run(source, toSource, fromSource)
		fromSource.Close()
		done <- code
	}()
	sinkCode = run(sink, toSink, fromSink)
	fromSink.Close()
	io.Copy(io.Discard, toSink)
	return <-done, sinkCode
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// tree returns the files below dir with mode, time and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		rel, _ := filepath.Rel(dir, path)
		got[rel] = info.Mode().String() + info.ModTime().UTC().Truncate(time.Second).String() + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCopyOfATree(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for path, mode := range map[string]os.FileMode{"d/empty": 0o600, "d/sub/a file": 0o754, "d/sub/deep/x": 0o444} {
		path = filepath.Join(from, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat(path, len(path)%7*1000)), mode); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, mode)
	}
	filepath.WalkDir(from, func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, old, old) })
	if a, b := copyOver(t, []string{"-frp", filepath.Join(from, "d")}, []string{"-t", "-r", "-p", to}); a != 0 || b != 0 {
		t.Errorf("got codes %d and %d", a, b)
	}
	if diff := cmp.Diff(tree(t, from), tree(t, to)); diff != "" {
		t.Error(diff)
	}
}

func TestCopyOfOneFile(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.WriteFile(from, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "to")
	if err := os.WriteFile(to, []byte("old and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	copyOver(t, []string{"-f", from}, []string{"-t", to})
	if got, err := os.ReadFile(to); string(got) != "new" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestWhatCannotBeCopied: scp reports it and copies the rest.
func TestWhatCannotBeCopied(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	good := filepath.Join(from, "good")
	if err := os.WriteFile(good, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := copyOver(t, []string{"-f", filepath.Join(from, "missing"), from, good}, []string{"-t", to})
	if a != 1 {
		t.Errorf("got codes %d and %d; want the source to say that not all was copied", a, b)
	}
	if _, err := os.Stat(filepath.Join(to, "good")); err != nil {
		t.Error(err)
	}
	if _, b := copyOver(t, []string{"-f", good}, []string{"-td", filepath.Join(to, "nowhere")}); b != 1 {
		t.Errorf("got code %d for a target that is no directory", b)
	}
}

// TestNothingIsWrittenOutside gives a sink the messages of a hostile source
// (CVE-2019-6111 is the client's side of it).
func TestNothingIsWrittenOutside(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "to")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, lines := range []string{
		"C0644 1 ../out\nx\x00", "C0644 1 /out\nx\x00", "C0644 1 ..\nx\x00", "D0755 0 ..\nC0644 1 out\nx\x00E\n", "C0644 1 \nx\x00", "C0644 -1 out\nx\x00",
		"D0755 0 sub\n", "X\n", "\n", "T1 2\n", "C9999 1 a\nx\x00", strings.Repeat("C", maxLine+1), "E\nE\nE\n",
	} {
		var answers bytes.Buffer
		run([]string{"-t", to}, strings.NewReader(lines), &answers)
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%q wrote %v", lines, entries)
		}
		if entries, _ := os.ReadDir(to); len(entries) != 0 {
			t.Errorf("%q wrote %v", lines, entries)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, args := range []string{"", "-t", "-f", "-t a b", "-tf a", "-x a", "a b"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q was understood", args)
		}
	}
	got, err := parse([]string{"-v", "-r", "-p", "-d", "-t", "--", "-odd"})
	if want := (options{sink: true, recursive: true, preserve: true, directory: true, paths: []string{"-odd"}}); err != nil || !cmp.Equal(want, got, cmp.AllowUnexported(options{})) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("C0644 12 name of it")
	f.Add("E")
	f.Add("T1 0 2 0")
	f.Fuzz(func(t *testing.T, line string) {
		if m, err := parseMessage(line); err == nil && m.kind != 'E' {
			again, err := parseMessage(m.String())
			if err != nil || again != m {
				t.Errorf("%q: got %+v, then %+v, %v", line, m, again, err)
			}
			if filepath.Base(m.name) != m.name {
				t.Errorf("%q leads elsewhere", m.name)
			}
		}
		parseTimes(line)
	})
}
