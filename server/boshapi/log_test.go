package boshapi

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cupola/server/logcache"
)

func TestChosen(t *testing.T) {
	for _, c := range []struct {
		name    string
		filters []string
		want    bool
	}{
		{"nats/out.log", nil, true},
		{"nats/out.log", []string{"nats/*"}, true},
		{"nats/out.log", []string{"nats/*.txt"}, false},
		{"nats/deep/out.log", []string{"nats/*"}, false},
		{"nats/deep/out.log", []string{"**/*.log"}, true},
		{"out.log", []string{"**/*.log"}, true},
		{"out.log", []string{"[", "x/*"}, false},
	} {
		if got := chosen(c.name, c.filters); got != c.want {
			t.Errorf("%s, %v: got %v; want %v", c.name, c.filters, got, c.want)
		}
	}
}

// TestPackFiles packs a directory that a process has filled with links out of it.
func TestPackFiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	data := filepath.Join(dir, "data")
	for _, err := range []error{os.WriteFile(secret, []byte("secret"), 0o600), os.MkdirAll(filepath.Join(data, "log", "nats"), 0o700),
		os.WriteFile(filepath.Join(data, "log", "nats", "out.log"), []byte("hello"), 0o600),
		os.Truncate(sparse(t, filepath.Join(data, "log", "nats", "huge.log")), 1<<40),
		os.Symlink(secret, filepath.Join(data, "log", "nats", "link.log")), os.Symlink(dir, filepath.Join(data, "log", "up"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	pack := func(dir string) (names []string) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		var out bytes.Buffer
		archive := tar.NewWriter(&out)
		p := packer{archive: archive, dir: "log", room: 1 << 20}
		if err := p.pack(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(&out); ; {
			h, err := r.Next()
			if err == io.EOF {
				return names
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
		}
	}
	if got := pack(data); !slices.Equal(got, []string{"./nats/out.log"}) {
		t.Errorf("got %v; want the file alone", got)
	}
	if got := pack(dir); got != nil {
		t.Errorf("got %v of a volume without logs", got)
	}
	if err := os.RemoveAll(filepath.Join(data, "log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(data, "log")); err != nil {
		t.Fatal(err)
	}
	if got := pack(data); got != nil {
		t.Errorf("got %v; want nothing behind a link out of the volume", got)
	}
}

func sparse(t *testing.T, name string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestStemcellOf(t *testing.T) {
	for stemcell, want := range map[string]bool{"ubuntu-jammy": true, "bosh-warden-boshlite-ubuntu-jammy-go_agent": true, "ubuntu-jammyx": false, "bosh-ubuntu-noble-go_agent": false} {
		if got := named(stemcell, "ubuntu-jammy"); got != want {
			t.Errorf("%s: got %v; want %v", stemcell, got, want)
		}
	}
}

// TestDiffLines checks the form of the director's diffs.
func TestDiffLines(t *testing.T) {
	got, err := diffLines("a: 1\npassword: x\n", "a: 1\npassword: y\n", false)
	want := [][2]any{{"a: 1", nil}, {"password: <redacted>", "removed"}, {"password: <redacted>", "added"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// TestOutputFile checks which lines are a program's, and where bpm would keep them.
func TestOutputFile(t *testing.T) {
	for _, c := range []struct {
		source string
		err    bool
		want   string
	}{
		{"web/nats/server", false, "nats/server.stdout.log"},
		{"web/nats/server", true, "nats/server.stderr.log"},
		{"web/nats/", false, ""},
		{"web/nats/../../x", false, ""},
		{"CELL/nats/server", false, ""},
	} {
		l := logcache.Envelope{Tags: map[string]string{"job": "web", "bosh_job": "nats", "source_type": c.source}, Err: c.err}
		if got := outputFile(&l); got != c.want {
			t.Errorf("%s, %v: got %q; want %q", c.source, c.err, got, c.want)
		}
	}
}
