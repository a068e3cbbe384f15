package tool

import (
	"bytes"
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
		{command: "grep -o [0-9]+", in: "a12b3\n", out: "12\n3\n"},
		{command: "grep -q z", in: "abc\n", exit: 1},
		{command: "grep (", in: "abc\n", exit: 2},
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
