package main

import (
	"bytes"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/cmd/cupola/command"
)

// installed are the files below root with their modes and times.
func installed(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			name, _ := filepath.Rel(root, file)
			found["/"+name] = info.Mode().String() + " " + info.ModTime().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInstall installs below a directory, three times: the second changes
// nothing, and after the third, without TLS, its socket is gone. Nothing is left
// of it after uninstall --purge, but directories.
func TestInstall(t *testing.T) {
	root := t.TempDir()
	var out bytes.Buffer
	e := &command.Env{Ctx: t.Context(), Out: &out, Err: &out, Log: slog.New(slog.DiscardHandler)}
	c := &installCmd{DaemonFlags: command.DaemonFlags{DataDir: "/srv/my cupola"}, HTTP: "127.0.0.1:8080", HTTPS: "127.0.0.1:8443", SSH: "off", Root: root}
	wrong := *c
	wrong.TCP, wrong.HTTP = "1024-1123", "127.0.0.1:eighty"
	err := wrong.Run(e)
	for _, want := range []string{`invalid --tcp "1024-1123": give an address, like 127.0.0.1:1024-1123: it has no port`, `invalid --http "127.0.0.1:eighty": give an address, like`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if got := installed(t, root); len(got) > 0 {
		t.Errorf("got %v installed with wrong flags", got)
	}
	if err := c.Run(e); err != nil {
		t.Fatal(err)
	}
	first := installed(t, root)
	want := []string{"/etc/cupola/cupola.yml", "/etc/systemd/system/cupola-http.socket", "/etc/systemd/system/cupola-https.socket",
		"/etc/systemd/system/cupola.service", "/etc/systemd/system/cupola.slice", installedBinary}
	want = slices.Sorted(slices.Values(slices.Concat(want, slices.Collect(maps.Keys(sharedFiles)))))
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	for name, mode := range map[string]string{installedBinary: "-rwxr-xr-x ", installedConfig: "-rw------- ", unitDir + "/cupola.service": "-rw-r--r-- "} {
		if !strings.HasPrefix(first[name], mode) {
			t.Errorf("%s: got %q; want %q", name, first[name], mode)
		}
	}
	if err := c.Run(e); err != nil {
		t.Fatal(err)
	}
	if again := installed(t, root); !maps.Equal(first, again) {
		t.Errorf("once more: got %v; want it unchanged, %v", again, first)
	}
	own := []byte("debug: true\n")
	if err := os.WriteFile(filepath.Join(root, installedConfig), own, 0o600); err != nil {
		t.Fatal(err)
	}
	c.HTTPS = "off"
	if err := c.Run(e); err != nil {
		t.Fatal(err)
	}
	if _, ok := installed(t, root)["/etc/systemd/system/cupola-https.socket"]; ok {
		t.Error("the socket stayed that is not wanted")
	}
	if got, err := os.ReadFile(filepath.Join(root, installedConfig)); err != nil || !bytes.Equal(got, own) {
		t.Errorf("got %q, %v; want the operator's configuration", got, err)
	}
	i := &installation{root: root}
	if dir, err := i.dataDir(); err != nil || dir != "/srv/my cupola" {
		t.Errorf("got %q, %v", dir, err)
	}
	uninstalls(t, e, root, &out)
}

func uninstalls(t *testing.T, e *command.Env, root string, out *bytes.Buffer) {
	t.Helper()
	data := filepath.Join(root, "/srv/my cupola")
	if err := os.MkdirAll(filepath.Join(data, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&uninstallCmd{Root: root}).Run(e); err != nil {
		t.Fatal(err)
	}
	if left := slices.Collect(maps.Keys(installed(t, root))); !slices.Equal(left, []string{installedConfig}) {
		t.Errorf("left %q; want what is the operator's", left)
	}
	if _, err := os.Stat(data); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
	c := &installCmd{DaemonFlags: command.DaemonFlags{DataDir: "/srv/my cupola"}, HTTP: "127.0.0.1:8080", HTTPS: "off", SSH: "off", Root: root}
	if err := c.Run(e); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (&uninstallCmd{Root: root, Purge: true}).Run(e); err != nil {
			t.Fatal(err)
		}
	}
	if left := installed(t, root); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data stayed")
	}
	if !strings.HasSuffix(out.String(), "Nothing is installed.\n") {
		t.Errorf("got %q", out.String())
	}
}

// TestInstallOfAPackage: a program that a package installed runs where it is.
func TestInstallOfAPackage(t *testing.T) {
	for _, c := range []struct{ root, self, want string }{
		{"", packagedBinary, packagedBinary},
		{"", "/home/me/cupola", installedBinary},
		{"/image", packagedBinary, installedBinary}, // a machine image gets a copy
	} {
		i := &installation{root: c.root, self: c.self}
		unit := (&installCmd{HTTP: "127.0.0.1:8080", HTTPS: "off", SSH: "off"}).service(i.binary(), "/data").Units()["cupola.service"]
		if !strings.Contains(unit, "\nExecStart="+c.want+" serve ") {
			t.Errorf("%+v: got %s; want %s to run", c, unit, c.want)
		}
	}
}
