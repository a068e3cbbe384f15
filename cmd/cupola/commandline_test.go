package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran runs a command line, and gives the exit code and what was printed.
func ran(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = run(args, files[0], files[1])
	var text [2]string
	for i, f := range files {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(b)
	}
	return code, text[0], text[1]
}

// TestWrongCommandLines are answered with the help that helps.
func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ line, help string }{
		{"--no-such-flag", "--help"},
		{"serv", "--help"},
		{"serve --htpp :1", "serve --help"},
		{"stack pull", "stack pull --help"},
		{"stack pul x", "stack --help"},
		{"deployment lint", "deployment lint --help"},
		{"simulate --cells many", "simulate --help"},
	} {
		code, out, said := ran(t, strings.Fields(c.line)...)
		if code != 2 || out != "" || !strings.HasPrefix(said, "cupola: ") || !strings.HasSuffix(said, "\nTry 'cupola "+c.help+"'.\n") {
			t.Errorf("%s: got code %d, %q, %q; want 2 and %s", c.line, code, out, said, c.help)
		}
	}
}
