package buildpack

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindSaysTheMend(t *testing.T) {
	t.Setenv("CF_STACK", "minifs")
	s := &stage{}
	_, err := s.find("rust", "bring your own", []string{"no-such-tool"}, t.TempDir())
	want := "no no-such-tool in stack 'minifs': push with -s and a stack that has it (see cf stacks; host has what this machine has), or get it: sudo cupola stack build debian12 --with rust, and push with -s debian12, or bring your own"
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	t.Setenv("CF_STACK", "host")
	if got := lackOf("nginx").Error(); !strings.Contains(got, "no nginx in stack 'host': ") || !strings.Contains(got, "get it: sudo apt-get install -y nginx-light libnginx-mod-stream, or sudo cupola stack build") {
		t.Errorf("got %q; want the machine's packages, too", got)
	}
}

func TestFindLooksInDirectories(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "odd-tool3.1")
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := (&stage{}).find("ruby", "", []string{"odd-tool", "odd-tool[0-9]*"}, dir)
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestIndenter(t *testing.T) {
	var buf bytes.Buffer
	w := &indenter{w: &buf}
	for _, part := range []string{"a", "b\nc\n\nd"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.flush()
	if got, want := buf.String(), "       ab\n       c\n       \n       d\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestParseEntryPoints(t *testing.T) {
	got, err := parseEntryPoints(strings.NewReader("[gui_scripts]\nx = a:b\n[console_scripts]\nrun = pkg.mod:main [extra]\nbad = a:b; import os\n../up = a:b\n"))
	if err != nil || len(got) != 1 || got[0] != (entryPoint{"run", "pkg.mod", "main"}) {
		t.Errorf("got %v, %v; want run alone", got, err)
	}
}
