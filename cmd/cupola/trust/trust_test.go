package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/cmd/cupola/command"
	"cupola/runtime/authority"
	"cupola/server/datadir"
)

// machine is a root directory of a system, and what its programs were asked.
type machine struct {
	t    *testing.T
	root string
	runs []string
	nss  map[string][]byte // what certutil keeps, by database and name
	no   []string          // programs that fail
}

func newMachine(t *testing.T, files ...string) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), nss: map[string][]byte{}}
	for _, name := range files {
		path := filepath.Join(m.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run stands for the programs of the system.
func (m *machine) run(p program) ([]byte, error) {
	m.runs = append(m.runs, strings.TrimSpace(filepath.Base(p.path)+" "+strings.Join(p.args, " ")))
	if slices.Contains(m.no, filepath.Base(p.path)) {
		return nil, &exec.Error{Name: p.path, Err: exec.ErrNotFound}
	}
	if p.path != "certutil" {
		if p.root != m.root {
			m.t.Errorf("%s ran with the root %q; want %q", p.path, p.root, m.root)
		}
		return nil, nil
	}
	key := p.args[1]
	switch p.args[2] {
	case "-A":
		m.nss[key] = bytes.ReplaceAll(p.input, []byte("\n"), []byte("\r\n"))
	case "-D":
		delete(m.nss, key)
	case "-L":
		if m.nss[key] == nil {
			return []byte("could not find certificate"), errors.New("exit status 255")
		}
		return m.nss[key], nil
	}
	return nil, nil
}

// newCA makes the CA of a data directory.
func newCA(t *testing.T) (dir string, ca authorityCert) {
	t.Helper()
	dir = t.TempDir()
	if _, err := authority.Open(datadir.AuthorityConfig(dir)); err != nil {
		t.Fatal(err)
	}
	ca, err := (&Cmd{DaemonFlags: command.DaemonFlags{DataDir: dir}}).certificate()
	if err != nil {
		t.Fatal(err)
	}
	return dir, ca
}

// TestSystemStores trusts a CA on distributions of each layout, twice, and removes it.
func TestSystemStores(t *testing.T) {
	_, ca := newCA(t)
	for _, test := range []struct {
		name, dir, program, adds, removes string
	}{
		{"Debian", "usr/local/share/ca-certificates", "usr/sbin/update-ca-certificates", "update-ca-certificates", "update-ca-certificates --fresh"},
		{"Fedora", "etc/pki/ca-trust/source/anchors", "usr/bin/update-ca-trust", "update-ca-trust extract", "update-ca-trust extract"},
		{"Arch", "etc/ca-certificates/trust-source/anchors", "usr/bin/trust", "trust extract-compat", "trust extract-compat"},
		{"openSUSE", "etc/pki/trust/anchors", "usr/sbin/update-ca-certificates", "update-ca-certificates", "update-ca-certificates --fresh"},
	} {
		m := newMachine(t, test.dir+"/", test.program)
		file := filepath.Join(m.root, test.dir, ca.name+".crt")
		for n, want := range []string{"trusted by", "already in"} {
			var out strings.Builder
			if err := change(&out, ca, systemStores(m.root), false, m.run); err != nil || !strings.Contains(out.String(), want+"   the system's store "+filepath.Dir(file)) {
				t.Errorf("%s, time %d: got %q, %v; want %s", test.name, n, out.String(), err, want)
			}
			if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, ca.pem) {
				t.Errorf("%s: got %s, %v", test.name, is, err)
			}
		}
		for n, want := range []string{"removed from", "not in"} {
			var out strings.Builder
			if err := change(&out, ca, systemStores(m.root), true, m.run); err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%s, removed %d: got %q, %v", test.name, n, out.String(), err)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the file is still there: %v", test.name, err)
			}
		}
		if got := strings.Join(m.runs, ", "); got != strings.Join([]string{test.adds, test.adds, test.removes}, ", ") {
			t.Errorf("%s: ran %s", test.name, got)
		}
	}
}

// TestNoStore says what to install where nothing can make a bundle.
func TestNoStore(t *testing.T) {
	_, ca := newCA(t)
	m := newMachine(t, "etc/")
	var out strings.Builder
	err := change(&out, ca, systemStores(m.root), false, m.run)
	if err == nil || !strings.Contains(out.String(), "not changed  the system's store") || !strings.Contains(out.String(), "install the package ca-certificates") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if entries, _ := filepath.Glob(filepath.Join(m.root, "*/*")); len(entries) > 0 {
		t.Errorf("got %v; want nothing changed", entries)
	}
}

// TestBrowsers trusts a CA in the databases of a user's browsers; a renewed certificate
// takes the place of the one before.
func TestBrowsers(t *testing.T) {
	dir, ca := newCA(t)
	m := newMachine(t, ".pki/nssdb/cert9.db", ".mozilla/firefox/x.default/cert9.db", ".mozilla/firefox/profiles.ini")
	stores := userStores(account{home: m.root})
	if len(stores) != 2 {
		t.Fatalf("got %v; want the databases of two browsers", stores)
	}
	text := func(remove bool) string {
		t.Helper()
		var out strings.Builder
		if err := change(&out, ca, stores, remove, m.run); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	if got := text(false); strings.Count(got, "trusted by") != 2 || len(m.nss) != 2 {
		t.Errorf("got %q, %v", got, m.nss)
	}
	if got := text(false); strings.Count(got, "already in") != 2 {
		t.Errorf("again: got %q", got)
	}
	c, err := authority.Constrained(datadir.AuthorityConfig(dir), []string{"example.com"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if next := newAuthorityCert(c); next.name != ca.name {
		t.Errorf("got the name %s; want %s, since the key is the same", next.name, ca.name)
	} else {
		ca = next
	}
	if got := text(false); strings.Count(got, "trusted by") != 2 || len(m.nss) != 2 {
		t.Errorf("with another certificate: got %q, %v", got, m.nss)
	}
	if got := text(true); strings.Count(got, "removed from") != 2 || len(m.nss) != 0 {
		t.Errorf("removed: got %q, %v", got, m.nss)
	}
	m.no = []string{"certutil"}
	var out strings.Builder
	if err := change(&out, ca, stores, false, m.run); err == nil || !strings.Contains(out.String(), "install the package libnss3-tools") {
		t.Errorf("without certutil: got %q, %v", out.String(), err)
	}
}

// TestPrint prints the CA's certificate, and names a data directory without one.
func TestPrint(t *testing.T) {
	dir, _ := newCA(t)
	var out strings.Builder
	if err := (&Cmd{DaemonFlags: command.DaemonFlags{DataDir: dir}, Print: true}).Run(&command.Env{Out: &out}); err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode([]byte(out.String()))
	if block == nil || len(rest) > 0 {
		t.Fatalf("got %q", out.String())
	}
	if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
		t.Errorf("got %v, %v; want a CA", c, err)
	}
	err := (&Cmd{DaemonFlags: command.DaemonFlags{DataDir: t.TempDir()}, Print: true}).Run(&command.Env{Out: &out})
	if err == nil || !strings.Contains(err.Error(), "start a daemon with 'sudo cupola serve'") {
		t.Errorf("got %v", err)
	}
}
