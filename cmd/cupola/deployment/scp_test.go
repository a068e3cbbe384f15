package deployment

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// TestPlaces tells paths in instances from those of this machine.
func TestPlaces(t *testing.T) {
	for text, want := range map[string]place{
		"nats/0:/tmp/x":     {"nats/0", "/tmp/x"},
		"nats:x":            {"nats", "x"},
		"nats/0:":           {"nats/0", "."},
		"nats/some-guid:/a": {"nats/some-guid", "/a"},
		"/tmp/a:b":          {"", "/tmp/a:b"},
		"./a:b":             {"", "./a:b"},
		"a/b/c:d":           {"", "a/b/c:d"},
		":x":                {"", ":x"},
		"file":              {"", "file"},
	} {
		if got := placeOf(text); got != want {
			t.Errorf("%s: got %+v; want %+v", text, got, want)
		}
	}
}

// TestHostileNames keeps what an instance calls its files below the target.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a\x00b"} {
		if path, err := below("dir", name); err == nil {
			t.Errorf("%q: got %s", name, path)
		}
	}
	if path, err := below("dir", "..x"); err != nil || path != "dir/..x" {
		t.Errorf("got %s, %v", path, err)
	}
}

// TestLines puts the instance's name before each line, and keeps a program's output from
// steering the terminal.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: &out, prefix: "nats/0: stdout | ", mu: new(sync.Mutex)}
	for _, part := range []string{"a", "b\r\nc\x1b[2J\td\n", "", "rest"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	l.flush()
	if got, want := out.String(), "nats/0: stdout | ab\nnats/0: stdout | c?[2J\td\nnats/0: stdout | rest\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	out.Reset()
	long := strings.Repeat("x", 3*maxLine/2)
	_, _ = l.Write([]byte(long))
	if len(l.rest) >= maxLine {
		t.Errorf("%d bytes of a line without an end are kept", len(l.rest))
	}
}
