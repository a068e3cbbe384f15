package lifecycle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"cupola/runtime/contract"
	"cupola/runtime/packed"
)

func TestInstallProgramReplacesOnlyWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lifecycle")
	one, two := strings.Repeat("one ", 1000), strings.Repeat("two ", 1000)
	pack := func(program string) []byte {
		t.Helper()
		b, err := packed.Pack([]byte(program))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	programs := fstest.MapFS{"packed/lifecycle.zst": {Data: pack(one), Mode: 0o644}}
	install := func() os.FileInfo {
		t.Helper()
		if err := installProgram(programs, dir, "lifecycle"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o755 {
			t.Errorf("got mode %v; want 0755", info.Mode())
		}
		return info
	}
	first := install()
	if again := install(); !os.SameFile(first, again) {
		t.Error("an equal program was replaced")
	}
	programs["packed/lifecycle.zst"].Data = pack(two)
	second := install()
	if text, err := os.ReadFile(path); err != nil || string(text) != two || os.SameFile(first, second) {
		t.Errorf("got %q, %v; want the new program in a new file", text, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	install()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v; want the program alone", entries, err)
	}
}

func TestInstallSaysHowToBuild(t *testing.T) {
	err := installProgram(fstest.MapFS{}, t.TempDir(), "lifecycle")
	if !errors.Is(err, errNotBuilt) {
		t.Errorf("got %v; want %v", err, errNotBuilt)
	}
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "lifecycle")
	err := Install(dir)
	if errors.Is(err, errNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range contract.Links() {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != target {
			t.Errorf("%s: got %q, %v; want a link to %s", name, got, err, target)
		}
	}
	if err := Install(dir); err != nil {
		t.Error(err)
	}
}

func TestInstallLinkReplacesWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "launcher")
	for _, target := range []string{"old", "init", "init"} {
		if err := installLink(path, target); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("got %q, %v; want %s", got, err, target)
		}
	}
}
