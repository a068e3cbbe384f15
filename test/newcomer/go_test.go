package newcomer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeBuildSaysWhatToDo runs 'make build' where go is missing, old, or one that can
// download no newer.
func TestMakeBuildSaysWhatToDo(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\ngo ")
	needed, _, _ := strings.Cut(rest, "\n")
	for name, c := range map[string]struct {
		program string // go, as a shell script; "" for none
		want    string
	}{
		"no Go":                  {"", "this machine has none"},
		"an old Go":              {"echo go version go1.19.8 linux/amd64", "this machine has go1.19.8"},
		"a Go that is not newer": {`[ "$GOTOOLCHAIN" = local ] || exit 1; echo go version go1.22.1 linux/amd64`, "this machine has go1.22.1"},
	} {
		bin := t.TempDir()
		for _, tool := range []string{"bash", "sh", "sed", "sort", "head", "uname", "dirname", "find", "awk", "git", "id", "make", "seq", "env", "mkdir"} {
			if path, err := exec.LookPath(tool); err == nil {
				if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c.program != "" {
			if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\n"+c.program+"\n"), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "make", "-B", "build")
		cmd.Dir, cmd.Env = root, []string{"PATH=" + bin, "HOME=" + bin}
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err == nil || !strings.Contains(text, c.want) || !strings.Contains(text, "https://go.dev/dl/go"+needed+".linux-") || strings.Contains(text, "go build") {
			t.Errorf("%s: got %v\n%s\nwant %q, and nothing built", name, err, text, c.want)
		}
	}
}
