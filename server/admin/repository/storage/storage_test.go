package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/admin/repository/storage"
	"cupola/server/admin/repository/storagetest"
)

// addresses are one storage of each kind.
func addresses(t *testing.T) map[string]string {
	t.Helper()
	strange := filepath.Join(t.TempDir(), "a#b?c %d")
	if err := os.Mkdir(strange, 0o700); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"directory": strange, "sftp": storagetest.SFTP(t, t.TempDir()).Address, "s3": storagetest.S3(t).Address}
}

func open(t *testing.T, address string) storage.Storage {
	t.Helper()
	s, err := storage.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func list(t *testing.T, s storage.Storage, folder string) []string {
	t.Helper()
	all := map[string]bool{}
	if err := s.List(t.Context(), folder, func(o storage.Object) error {
		all[fmt.Sprint(o.Name, " ", o.Size)] = true
		if o.Modified.IsZero() {
			t.Errorf("%s has no time", o.Name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// halves are the names of what is half of an object.
func halves(t *testing.T, s storage.Storage) (names []string) {
	t.Helper()
	if err := s.List(t.Context(), "", func(o storage.Object) error {
		if o.Half() {
			names = append(names, o.Name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// TestEveryStorage holds each kind to what the interface says.
func TestEveryStorage(t *testing.T) {
	for kind, address := range addresses(t) {
		t.Run(kind, func(t *testing.T) {
			s := open(t, address)
			if got := list(t, s, "chunks"); len(got) > 0 {
				t.Errorf("an empty one has %v", got)
			}
			if _, err := s.Get(t.Context(), "chunks/ab/none", 10); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("what is not there: %v", err)
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
			for name, content := range map[string][]byte{"chunks/ab/one": []byte("first"), "chunks/ab/two": big, "chunks/cd/three": {}, "snapshots/x": []byte("x")} {
				if err := s.Put(t.Context(), name, content); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := s.Put(t.Context(), "chunks/ab/one", []byte("second")); err != nil {
				t.Errorf("replace: %v", err)
			}
			if got, err := s.Get(t.Context(), "chunks/ab/one", 6); err != nil || string(got) != "second" {
				t.Errorf("got %q (%v)", got, err)
			}
			if _, err := s.Get(t.Context(), "chunks/ab/one", 5); err == nil {
				t.Error("it gave more than the limit")
			}
			if got, err := s.Get(t.Context(), "chunks/ab/two", int64(len(big))); err != nil || !bytes.Equal(got, big) {
				t.Errorf("got %d bytes of %d (%v)", len(got), len(big), err)
			}
			if got := fmt.Sprint(list(t, s, "chunks")); got != fmt.Sprintf("[chunks/ab/one 6 chunks/ab/two %d chunks/cd/three 0]", len(big)) {
				t.Errorf("it has %s", got)
			}
			if err := s.Put(t.Context(), "chunks/ab/cut.half", nil); err != nil || !slices.Equal(halves(t, s), []string{"chunks/ab/cut.half"}) {
				t.Errorf("%v; the halves are %v", err, halves(t, s))
			}
			if err := s.Remove(t.Context(), "chunks/ab/cut.half"); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := s.Remove(t.Context(), "chunks/ab/two"); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
			if got := fmt.Sprint(list(t, open(t, address), "chunks")); got != "[chunks/ab/one 6 chunks/cd/three 0]" {
				t.Errorf("then it has %s", got)
			}
		})
	}
}

// TestAddressesThatAreNone holds that each fault is named, and no password repeated.
func TestAddressesThatAreNone(t *testing.T) {
	for address, want := range map[string]string{
		"relative/dir":                        "absolute path",
		"ftp://host/x":                        `unknown scheme "ftp"`,
		"sftp://host/x":                       "sftp://USER@HOST",
		"sftp://u:hunter2@host/x":             "has a password",
		"sftp://u:hunter2%zz@host/x":          "invalid address",
		"sftp://u@host/x?keys=/f":             `unknown option "keys"`,
		"s3://host/":                          "s3://HOST/BUCKET",
		"s3://host/bucket?secret=hunter2":     `unknown option "secret"`,
		"s3://key:hunter2@host/bucket/prefix": "has a password",
	} {
		err := storage.Check(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v; want %q", address, err, want)
		}
	}
}

// TestStrangersAreRefused connects to a server whose key is not known, and with keys that
// the server does not know.
func TestStrangersAreRefused(t *testing.T) {
	a, b := storagetest.SFTP(t, t.TempDir()), storagetest.SFTP(t, t.TempDir())
	key := func(address, name string) string {
		_, query, _ := strings.Cut(address, "?")
		for _, part := range strings.Split(query, "&") {
			if value, ok := strings.CutPrefix(part, name+"="); ok {
				return value
			}
		}
		return ""
	}
	unknown := strings.ReplaceAll(a.Address, key(a.Address, "known-hosts"), key(b.Address, "known-hosts"))
	if _, err := storage.Open(t.Context(), unknown); err == nil || !strings.Contains(err.Error(), "not in known-hosts") {
		t.Errorf("an unknown server: %v", err)
	}
	stranger := strings.ReplaceAll(a.Address, key(a.Address, "key"), key(b.Address, "key"))
	if _, err := storage.Open(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "log in at") {
		t.Errorf("a key that is not known: %v", err)
	}
	if _, err := storage.Open(t.Context(), filepath.Join(t.TempDir(), "unmounted")); err == nil || !strings.Contains(err.Error(), "mount the disk") {
		t.Errorf("a directory that is not there: %v", err)
	}
	credentials := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(credentials, []byte("[default]\naws_access_key_id = X\naws_secret_access_key = Y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(storagetest.S3(t).Address, "?")
	if err := open(t, before+"?insecure=true&credentials="+credentials).Put(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "refuses the credentials") {
		t.Errorf("other credentials: %v", err)
	}
	if err := os.WriteFile(credentials, []byte("hush hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Open(t.Context(), before+"?credentials="+credentials); err == nil || !strings.Contains(err.Error(), "cannot read keys") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a file of something else: %v", err)
	}
}
