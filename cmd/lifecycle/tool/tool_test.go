package tool

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTools(t *testing.T) {
	tests := []struct {
		command string
		in      string
		out     string
		exit    int
	}{
		{command: "basename /a/b.txt .txt", out: "b\n"},
		{command: "basename b.txt b.txt", out: "b.txt\n"},
		{command: "dirname /a/b", out: "/a\n"},
		{command: "dirname /a/b/", out: "/a\n"},
		{command: "dirname a", out: ".\n"},
		{command: "dirname /", out: "/\n"},
		{command: "head -n 2", in: "1\n2\n3\n", out: "1\n2\n"},
		{command: "head -1", in: "1\n2\n3\n", out: "1\n"},
		{command: "head -c 3", in: "12345", out: "123"},
		{command: "head", in: "no newline", out: "no newline"},
		{command: "tail -n 1", in: "1\n2\n3\n", out: "3\n"},
		{command: "tail -n +2", in: "1\n2\n3\n", out: "2\n3\n"},
		{command: "tail -c 2", in: "12345", out: "45"},
		{command: "wc -l", in: "1\n2\n", out: "2\n"},
		{command: "wc", in: "1 2\n", out: "1 2 4\n"},
		{command: "grep b", in: "abc\ndef\n", out: "abc\n"},
		{command: "grep -v b", in: "abc\ndef\n", out: "def\n"},
		{command: "grep -c b", in: "abc\nb\n", out: "2\n"},
		{command: "grep -in B", in: "x\nabc\n", out: "2:abc\n"},
		{command: "grep -oE [0-9]+", in: "a12b3\n", out: "12\n3\n"},
		{command: "grep -o a+", in: "aa+\n", out: "a+\n"},
		{command: `grep -x a\+`, in: "aaa\nb\n", out: "aaa\n"},
		{command: "sed s/a/b/", in: "aa\nc", out: "ba\nc"},
		{command: `sed s,\(a\)\(b\),\2\1&$1,g`, in: "abab\n", out: "baab$1baab$1\n"},
		{command: `sed -E s/(a|b)+/[&]/`, in: "xabay\n", out: "x[aba]y\n"},
		{command: "sed -n /b/p", in: "a\nb\n", out: "b\n"},
		{command: "sed 2,3d", in: "1\n2\n3\n4\n", out: "1\n4\n"},
		{command: "sed $d", in: "1\n2\n", out: "1\n"},
		{command: "sed /2/!d", in: "1\n2\n", out: "2\n"},
		{command: "sed 1q", in: "1\n2\n", out: "1\n"},
		{command: "sed -e s/1/a/ -e s/2/b/", in: "1\n2\n", out: "a\nb\n"},
		{command: "sed y/a/b/", in: "1\n", exit: 1},
		{command: "sed s/a", exit: 1},
		{command: "xargs echo", in: "a 'b c'\nd\n", out: "a b c d\n"},
		{command: "xargs -n1 echo x", in: "a b", out: "x a\nx b\n"},
		{command: "xargs -I{} echo <{}>", in: "a b\nc\n", out: "<a b>\n<c>\n"},
		{command: "xargs -r false", in: ""},
		{command: "xargs false", in: "a", exit: 123},
		{command: "xargs no-such-program", in: "a", exit: 127},
		{command: "sha256sum", in: "", out: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  -\n"},
		{command: "shasum", in: "", out: "da39a3ee5e6b4b0d3255bfef95601890afd80709  -\n"},
		{command: "md5sum", in: "", out: "d41d8cd98f00b204e9800998ecf8427e  -\n"},
		{command: "base64 -d", in: "aGVs\nbG8=\n", out: "hello"},
		{command: "base64 -w0", in: "hello", out: "aGVsbG8="},
		{command: "echo -n a b", out: "a b"},
		{command: "zcat", in: "plain", exit: 1},
		{command: "ls /no/such/file", exit: 2},
		{command: "rm -f /no/such/file"},
		{command: "rm /no/such/file", exit: 1},
		{command: "rm -rf ..", exit: 1},
		{command: "grep -q z", in: "abc\n", exit: 1},
		{command: "grep -E (", in: "abc\n", exit: 2},
		{command: "grep -F .", in: "abc\na.c\n", out: "a.c\n"},
		{command: "cut -d : -f 1,3-", in: "a:b:c:d\nplain\n", out: "a:c:d\nplain\n"},
		{command: "cut -c 2-3", in: "abcd\n", out: "bc\n"},
		{command: "sort -n", in: "10\n9\n-1\n", out: "-1\n9\n10\n"},
		{command: "sort -ru", in: "a\nb\na\n", out: "b\na\n"},
		{command: "uniq -c", in: "a\na\nb\n", out: "      2 a\n      1 b\n"},
		{command: "seq 3", out: "1\n2\n3\n"},
		{command: "seq 3 -2 0", out: "3\n1\n"},
		{command: "tr a-z A-Z", in: "abc1\n", out: "ABC1\n"},
		{command: "tr -d \\n", in: "a\nb\n", out: "ab"},
		{command: "tr [:lower:] [:upper:]", in: "abc", out: "ABC"},
		{command: "base64", in: "hello", out: "aGVsbG8=\n"},
		{command: "cat", in: "x", out: "x"},
		{command: "true"},
		{command: "false", exit: 1},
		{command: "printenv NO_SUCH_VARIABLE", exit: 1},
		{command: "date +%%", out: "%\n"},
		{command: "sleep 0"},
		{command: "sleep x", exit: 1},
		{command: "env -i A=1", out: "A=1\n"},
		{command: "cut -f 0x1", exit: 1},
		{command: "which no-such-program", exit: 1},
	}
	for _, test := range tests {
		t.Run(test.command, func(t *testing.T) {
			argv := strings.Fields(test.command)
			var out, errs bytes.Buffer
			got := run(tools()[argv[0]], argv, streams{strings.NewReader(test.in), &out, &errs})
			if got != test.exit || out.String() != test.out {
				t.Errorf("got exit %d, output %q (%s); want %d, %q", got, out.String(), errs.String(), test.exit, test.out)
			}
		})
	}
}

// call runs a tool that must succeed and returns its output.
func call(t *testing.T, argv ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(tools()[argv[0]], argv, streams{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Fatalf("%v: exit %d: %s", argv, code, errs.String())
	}
	return out.String()
}

func TestGrepBelow(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "sub", "b")
	call(t, "mkdir", filepath.Dir(b))
	for file, text := range map[string]string{a: "one\n", b: "two\none\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for flags, want := range map[string]string{"-r": a + ":one\n" + b + ":one\n", "-rl": a + "\n" + b + "\n", "-rh": "one\none\n"} {
		if got := call(t, "grep", flags, "one", dir); got != want {
			t.Errorf("grep %s: got %q; want %q", flags, got, want)
		}
	}
	t.Chdir(dir)
	if got := call(t, "grep", "-r", "two"); got != "sub/b:two\n" {
		t.Errorf("in the current directory: got %q", got)
	}
	call(t, "mkdir", "none")
	if code := run(tools()["grep"], []string{"grep", "-r", "one", "none"}, streams{strings.NewReader("one\n"), io.Discard, io.Discard}); code != 1 {
		t.Errorf("in an empty directory: got exit %d; want 1", code)
	}
}

func TestCopyAndTarKeepTrees(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	call(t, "mkdir", "-p", filepath.Join(from, "sub"))
	if err := os.WriteFile(filepath.Join(from, "sub", "run"), []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	call(t, "ln", "-s", "sub/run", filepath.Join(from, "link"))

	copied := filepath.Join(dir, "copied")
	call(t, "cp", "-a", from, copied)
	checkTree(t, copied)

	archive, unpacked := filepath.Join(dir, "a.tgz"), filepath.Join(dir, "unpacked")
	call(t, "tar", "-czf", archive, "-C", from, ".")
	call(t, "mkdir", unpacked)
	call(t, "tar", "xzf", archive, "-C", unpacked)
	checkTree(t, unpacked)
}

func checkTree(t *testing.T, dir string) {
	t.Helper()
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "sub/run" {
		t.Errorf("link: got %q, %v; want sub/run", target, err)
	}
	info, err := os.Stat(filepath.Join(dir, "sub", "run"))
	if err != nil || info.Mode().Perm() != 0o755 || info.Size() != 1 {
		t.Errorf("sub/run: got %v, %v; want 1 byte, mode 0755", info, err)
	}
}

func TestMktemp(t *testing.T) {
	dir := t.TempDir()
	name := strings.TrimSpace(call(t, "mktemp", "-d", filepath.Join(dir, "xXXXXX")))
	if info, err := os.Stat(name); err != nil || !info.IsDir() || filepath.Dir(name) != dir {
		t.Errorf("got %s, %v; want a directory in %s", name, err, dir)
	}
	name = strings.TrimSpace(call(t, "mktemp", "-p", dir))
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		t.Errorf("got %s, %v; want a file", name, err)
	}
}

func TestDirectoryTools(t *testing.T) {
	t.Chdir(t.TempDir())
	call(t, "mkdir", "-p", "a/b", "a/.c")
	call(t, "mkdir", "-m", "700", "m")
	call(t, "touch", "-d", "2020-01-02", "a/x", "a/b/y.txt")
	call(t, "chmod", "u+x,g=r,o-rwx", "a/x")
	tests := []struct{ command, want string }{
		{"ls", "a\nm\n"},
		{"ls -1F a", "b/\nx*\n"},
		{"ls -A a", ".c\nb\nx\n"},
		{"ls -a a", ".\n..\n.c\nb\nx\n"},
		{"ls -d a a/b", "a\na/b\n"},
		{"ls a/b a/x", "a/x\n\na/b:\ny.txt\n"},
		{"ls -R a", "a:\nb\nx\n\na/b:\ny.txt\n"},
		{"find . -name *.txt", "./a/b/y.txt\n"},
		{"find a -maxdepth 1 -type d", "a\na/.c\na/b\n"},
		{"find a -type f -print", "a/b/y.txt\na/x\n"},
		{"find a -mindepth 2", "a/b/y.txt\n"},
		{"find a -empty -type d", "a/.c\n"},
		{"find a/ -path a/b/*", "a/b/y.txt\n"},
	}
	for _, test := range tests {
		if got := call(t, strings.Fields(test.command)...); got != test.want {
			t.Errorf("%s: got %q; want %q", test.command, got, test.want)
		}
	}
	if got := call(t, "ls", "-ln", "a/x"); !strings.HasPrefix(got, "-rwxr----- 1 ") || !strings.Contains(got, " 0 Jan  2 00:00 a/x") {
		t.Errorf("ls -ln: got %q", got)
	}
	if info, err := os.Stat("m"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("m: got %v, %v; want mode 0700", info, err)
	}
	call(t, "mv", "a/x", "m")
	call(t, "gzip", "-k", "m/x")
	call(t, "mv", "m/x.gz", "z.gz")
	call(t, "gunzip", "z.gz")
	call(t, "find", "a", "-delete")
	call(t, "rm", "-r", "m")
	if got := call(t, "ls"); got != "z\n" {
		t.Errorf("left: got %q; want z alone", got)
	}
	call(t, "mkdir", "-p", "p/q")
	call(t, "rmdir", "-p", "p/q")
}

func TestNewMode(t *testing.T) {
	tests := []struct {
		old  os.FileMode
		text string
		want uint32
	}{
		{0o644, "755", 0o755},
		{0o644, "+x", 0o755},
		{0o644, "u+x,go=", 0o700},
		{0o755, "a-x", 0o644},
		{0o644, "a+X", 0o644},
		{0o744, "a+X", 0o755},
		{0o755 | os.ModeDir, "+t", 0o1755},
		{0o4755, "u-s", 0o755},
		{0o600 | os.ModeSetuid, "g+r", 0o4640},
	}
	for _, test := range tests {
		if got, err := newMode(test.old, test.text); err != nil || got != test.want {
			t.Errorf("newMode(%v, %s): got %o, %v; want %o", test.old, test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"", "u", "u+q", "9", "x"} {
		if _, err := newMode(0, text); err == nil {
			t.Errorf("newMode(0, %q) was accepted", text)
		}
	}
}

func FuzzSed(f *testing.F) {
	f.Add("s/\\(a\\)[^]b]*/\\1&/gp;$!d", "abc\nd", false)
	f.Add("/x/,3s,a{2},b,", "aa\n", true)
	f.Fuzz(func(t *testing.T, script, text string, extended bool) {
		commands, err := parseSed(script, extended)
		if err != nil {
			return
		}
		if _, err := (editor{commands: commands}).edit(strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	})
}
