package debian

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"testing"
	"time"
)

func testTree(t *testing.T) *tree {
	t.Helper()
	tr, err := newTree(t.TempDir(), false, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	tr.nodes[""].mtime = time.Unix(1_700_000_000, 0)
	return tr
}

func TestTreeResolves(t *testing.T) {
	tr := testTree(t)
	for _, l := range [][2]string{
		{"bin", "usr/bin"}, {"usr/bin/abs", "/usr/lib/x"}, {"usr/up", "../etc"}, {"loop", "loop"}, {"chain", "bin"}, {"rootlink", "/"}, {"usr/bin/top", "/"},
	} {
		if err := tr.symlink(l[0], l[1], tr.own(0o777)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"bin/ls": "usr/bin/ls", "bin": "bin", "/bin/ls": "usr/bin/ls", "bin/abs/y": "usr/lib/x/y", "bin/abs": "usr/bin/abs", "usr/up/passwd": "etc/passwd",
		"chain/ls": "usr/bin/ls", "rootlink/bin/x": "usr/bin/x", "bin/top/../../..//etc/./x": "etc/x", "new/dir": "new/dir",
	} {
		if got, err := tr.resolve(name); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := tr.resolve("loop/x"); err == nil {
		t.Error("loop/x: got no error")
	}
	if err := tr.put("bin/tool", 0o755, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(tr.dir, "usr/bin/tool")); err != nil {
		t.Error(err)
	}
}

func TestClimbs(t *testing.T) {
	for _, test := range []struct {
		dir, target string
		want        bool
	}{
		{"", "x", false}, {"", "..", true}, {"", "a/../b", false}, {"a/b", "../../x", false}, {"a/b", "../../../x", true}, {"a", "/../x", false}, {"a", "b/../../../x", true},
	} {
		if got := climbs(test.dir, test.target); got != test.want {
			t.Errorf("%s in %q: got %v; want %v", test.target, test.dir, got, test.want)
		}
	}
}

func TestTreeSetsModesAndTimes(t *testing.T) {
	tr := testTree(t)
	closed := tr.own(0o500)
	if err := errors.Join(tr.mkdir("closed", closed), tr.put("closed/x", 0o400, nil), tr.symlink("closed/l", "x", closed), tr.finish()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(tr.dir, "closed"), 0o700) })
	for _, name := range []string{"", "closed", "closed/x", "closed/l"} {
		info, err := os.Lstat(filepath.Join(tr.dir, name))
		if err != nil || !info.ModTime().Equal(tr.nodes[""].mtime) {
			t.Errorf("%s: got %v, %v; want time %v", name, info, err, tr.nodes[""].mtime)
		}
	}
	if info, err := os.Lstat(filepath.Join(tr.dir, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("got %v, %v; want mode 0500", info, err)
	}
}

func TestPipeRunsAhead(t *testing.T) {
	p := newPipe(t.Context())
	want := bytes.Repeat([]byte("0123456789"), 400_000)
	for part := range bytes.Lines(bytes.ReplaceAll(want, []byte("9"), []byte("\n"))) {
		if _, err := p.Write(bytes.ReplaceAll(part, []byte("\n"), []byte("9"))); err != nil {
			t.Fatal(err)
		}
	}
	p.closeWith(nil)
	got, err := io.ReadAll(p)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
	}

	p = newPipe(t.Context())
	p.closeWith(io.ErrUnexpectedEOF)
	if _, err := io.ReadAll(p); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v; want the writer's error", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	p = newPipe(ctx)
	cancel()
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want the context's error", err)
	}
	if _, err := p.Write(make([]byte, (pipeChunks+2)*pipeChunk)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want the context's error", err)
	}
}
