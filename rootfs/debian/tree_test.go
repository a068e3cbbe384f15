package debian

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestParseAlternatives(t *testing.T) {
	script := `#!/bin/sh
update-alternatives --quiet --install /usr/bin/cc cc /usr/bin/gcc 20 \
    #--slave /usr/share/man/man1/cc.1.gz cc.1.gz /usr/share/man/man1/gcc.1.gz
if true; then update-alternatives --install "/usr/bin/nc" 'nc' /bin/nc.openbsd 50 --slave /bin/netcat netcat /bin/nc.openbsd || true; fi
update-alternatives --install /usr/bin/$x x /usr/bin/x 1
update-alternatives --install /usr/bin/lzma lzma /usr/bin/xz 20 $(slave a)
update-alternatives --remove w /usr/bin/w
update-alternatives --install relative x /usr/bin/x 1
update-alternatives --install /usr/bin/x x /usr/bin/x many
`
	want := []alternative{
		{link: "/usr/bin/cc", name: "cc", path: "/usr/bin/gcc", priority: 20},
		{link: "/usr/bin/nc", name: "nc", path: "/bin/nc.openbsd", priority: 50, slaves: []alternative{{link: "/bin/netcat", name: "netcat", path: "/bin/nc.openbsd"}}},
		{link: "/usr/bin/lzma", name: "lzma", path: "/usr/bin/xz", priority: 20},
	}
	if diff := cmp.Diff(want, parseAlternatives(script), cmp.AllowUnexported(alternative{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseAlternatives(f *testing.F) {
	f.Add("update-alternatives --install /a a /b 1 --slave /c c /d\n")
	f.Fuzz(func(t *testing.T, script string) {
		for _, a := range parseAlternatives(script) {
			if !strings.HasPrefix(a.link, "/") || !strings.HasPrefix(a.path, "/") {
				t.Errorf("%q: got %+v", script, a)
			}
		}
	})
}

func TestFinishAlternatives(t *testing.T) {
	tr := testTree(t)
	for _, name := range []string{"usr/bin/xz", "usr/bin/unxz", "usr/bin/xzcat", "usr/bin/vim.tiny", "usr/bin/vim.basic", "usr/bin/convert-im6.q16",
		"usr/lib/jvm/java-17/bin/java", "usr/bin/nc.a", "usr/bin/nc.b", "usr/bin/kill.procps", "usr/bin/taken.real"} {
		if err := tr.put(name, 0o755, nil); err != nil {
			t.Fatal(err)
		}
	}
	owned := tr.own(0o755)
	owned.owner = "someone"
	if _, err := tr.write("usr/bin/taken", owned, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	packages := []*installed{
		{LockedPackage: LockedPackage{Name: "xz-utils"}}, {LockedPackage: LockedPackage{Name: "vim"}}, {LockedPackage: LockedPackage{Name: "vim-tiny"}},
		{LockedPackage: LockedPackage{Name: "imagemagick-6.q16"}}, {LockedPackage: LockedPackage{Name: "procps"}},
		{LockedPackage: LockedPackage{Name: "openjdk-17-jre-headless"}, shipped: []string{"/usr/lib/jvm/java-17/bin/java", "/usr/lib/jvm/java-17/lib/x"}},
		{LockedPackage: LockedPackage{Name: "nc"}, members: map[string][]byte{"postinst": []byte(
			"update-alternatives --install /usr/bin/nc nc /usr/bin/nc.a 10\nupdate-alternatives --install /usr/bin/nc nc /usr/bin/nc.b 30\n" +
				"update-alternatives --install /usr/bin/taken taken /usr/bin/taken.real 1\nupdate-alternatives --install /usr/bin/gone gone /usr/bin/gone.real 1\n")}},
	}
	if err := finishAlternatives(tr, packages); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{
		"usr/bin/lzma": "/usr/bin/xz", "usr/bin/lzcat": "/usr/bin/xzcat", "usr/bin/vi": "/usr/bin/vim.basic", "usr/bin/vim": "/usr/bin/vim.basic",
		"usr/bin/convert": "/usr/bin/convert-im6.q16", "usr/bin/java": "/usr/lib/jvm/java-17/bin/java", "usr/bin/nc": "/usr/bin/nc.b", "usr/bin/kill": "/usr/bin/kill.procps",
	} {
		got := tr.nodes["etc/alternatives/"+filepath.Base(link)]
		if n := tr.nodes[link]; n == nil || n.target != "/etc/alternatives/"+filepath.Base(link) || got == nil || got.target != want {
			t.Errorf("%s: got %v by way of %v; want %s", link, got, n, want)
		}
	}
	for _, absent := range []string{"usr/bin/gone", "usr/bin/lzgrep", "etc/alternatives/taken"} {
		if tr.nodes[absent] != nil {
			t.Errorf("got %s; want none", absent)
		}
	}
	state, err := tr.read("var/lib/dpkg/alternatives/nc")
	if want := "auto\n/usr/bin/nc\n\n/usr/bin/nc.a\n10\n/usr/bin/nc.b\n30\n\n"; err != nil || string(state) != want {
		t.Errorf("got %q, %v; want %q", state, err, want)
	}
}
