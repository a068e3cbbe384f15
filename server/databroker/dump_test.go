package databroker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// shell is a database whose commands do nothing but to files of a directory.
type shell struct {
	postgres
	dir, says, dumps, loads string
}

func (s shell) version() string { return "echo '" + s.says + "'" }
func (s shell) dump() string    { return "cd " + s.dir + "\n" + s.dumps }
func (s shell) load() string    { return "cd " + s.dir + "\n" + s.loads }

// local is a program of this machine's shell.
type local struct {
	io.Writer
	io.Reader
	close func()
}

func (l local) Close() error { l.close(); return nil }

// attachLocal runs programs in this machine's shell, as Config.Attach does in containers.
func attachLocal(ctx context.Context, _ string, args ...string) (io.ReadWriteCloser, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return local{in, out, func() { in.Close(); cmd.Wait() }}, cmd.Start()
}

// TestSessions runs the programs around dumps and loads in a real shell: what fails is
// an error with what the program said, and none takes a part for the whole.
func TestSessions(t *testing.T) {
	content := strings.Repeat("row\n", 20_000) + "\x00\xff end"
	for name, c := range map[string]struct {
		e              shell
		version        string // of the backup that is loaded
		dumped, loaded string // errors; "" for none
		sameVersion    bool
	}{
		"well":           {shell{says: "Shell 1.5", dumps: "cat content; echo careful >&2", loads: "cat > loaded"}, "Shell 1.4", "", "", false},
		"fails":          {shell{says: "Shell 1.5", dumps: "head -c 9000 content; echo no room >&2; false", loads: "cat >/dev/null; echo broken row >&2; false"}, "Shell 1.5", "no room", "broken row", false},
		"silent":         {shell{says: "Shell 1.5", dumps: "false", loads: "exit 3"}, "Shell 1.5", "the server's client failed", "the server's client failed", false},
		"is killed":      {shell{says: "Shell 1.5", dumps: "cat content; kill -9 $$", loads: "kill -9 $$"}, "Shell 1.5", errCut.Error(), errCut.Error(), false},
		"says the end":   {shell{says: "Shell 1.5", dumps: "cat content; printf '\\nmark succeeded'; kill -9 $$", loads: "cat > loaded"}, "Shell 1.5", errCut.Error(), "", false},
		"earlier reader": {shell{says: "Shell 1.5", dumps: "cat content", loads: "cat > loaded"}, "Shell 1.10", "", "the backup is of Shell 1.10, which Shell 1.5 of this service instance cannot read", false},
		"other product":  {shell{says: "Husk 9", dumps: "cat content", loads: "cat > loaded"}, "Shell 1", "", "the backup is of Shell 1, which Husk 9 of this service instance cannot read", false},
		"the same":       {shell{says: "Shell 1.5", dumps: "cat content", loads: "cat > loaded"}, "Shell 1.5", "", "", true},
		"not the same":   {shell{says: "Shell 1.5", dumps: "cat content", loads: "cat > loaded"}, "Shell 1.4", "", "the backup is of Shell 1.4, which Shell 1.5 of this service instance cannot read", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready("i")
			w.Attach = attachLocal
			c.e.dir = t.TempDir()
			if err := os.WriteFile(filepath.Join(c.e.dir, "content"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			version, err := w.dump(t.Context(), w.row("i"), c.e, &got)
			if says(err) != c.dumped || c.dumped == "" && (got.String() != content || version != c.e.says) {
				t.Errorf("dump: got %d bytes of %q, %v; want %d, %q", got.Len(), version, err, len(content), c.dumped)
			}
			f, err := os.Open(filepath.Join(c.e.dir, "content"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := w.load(t.Context(), w.row("i"), service{engine: c.e, sameVersion: c.sameVersion}, c.version, f); says(err) != c.loaded {
				t.Errorf("load: got %v; want %q", err, c.loaded)
			}
			loaded, _ := os.ReadFile(filepath.Join(c.e.dir, "loaded"))
			if whole := string(loaded) == content; whole != (c.loaded == "") {
				t.Errorf("%d bytes were loaded of %d", len(loaded), len(content))
			}
		})
	}
}

// says is an error's text, "" of none.
func says(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestDirectories dumps and loads a directory. Both fail if the broker is off or the instance
// is not ready.
func TestDirectories(t *testing.T) {
	w := newWorld(t)
	s := &Service{broker: w.broker}
	w.write(func(tx *store.Tx) error {
		for guid, state := range map[string]cf.DataState{"f": cf.DataReady, "new": cf.DataMaking} {
			if err := store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: "files", Plan: "small", State: state}); err != nil {
				return err
			}
		}
		return nil
	})
	f, err := os.Create(filepath.Join(t.TempDir(), "f.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if version, err := s.Dump(t.Context(), "f", f); err != nil || version != "" {
		t.Errorf("got %q, %v; want a directory dumped", version, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), "f", "", f); err != nil || len(w.said) != 1 || w.said[0] != "f is now files of f" {
		t.Errorf("got %v, %q; want the directory replaced", err, w.said)
	}
	w.refuses = "in use"
	if err := s.Load(t.Context(), "f", "", f); err == nil || !strings.Contains(err.Error(), "stop them first") {
		t.Errorf("got %v; want to hear what to stop", err)
	}
	if _, err := s.Dump(t.Context(), "new", io.Discard); !IsNotRunning(err) {
		t.Errorf("got %v; want that it does not run", err)
	}
	if _, err := s.Dump(t.Context(), "none", io.Discard); !store.IsNotFound(err) {
		t.Errorf("got %v; want none found", err)
	}
	var off *Service
	if _, err := off.Dump(t.Context(), "f", io.Discard); !errors.Is(err, errOff) || !errors.Is(off.Load(t.Context(), "f", "", f), errOff) {
		t.Errorf("got %v; want that the broker is off", err)
	}
}

// endless writes the same for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = 'x'
	}
	return len(p), nil
}

// TestReadVersion bounds what a container says: its program may be another one by now.
func TestReadVersion(t *testing.T) {
	for name, c := range map[string]struct {
		from        io.Reader
		want, wrong string
	}{
		"a version": {strings.NewReader("PostgreSQL 15 \nrest"), "PostgreSQL 15", ""},
		"long":      {strings.NewReader(strings.Repeat("v", 200) + "\n"), strings.Repeat("v", maxVersion), ""},
		"cut off":   {strings.NewReader("Postgre"), "", errCut.Error()},
		"endless":   {endless{}, "", "longer than 4096 bytes"},
	} {
		got, err := readVersion(bufio.NewReader(c.from))
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
