package cell

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cupola/rootfs/tree"

	"github.com/google/go-cmp/cmp"
)

const (
	passwdText = "root:x:0:0:root:/root:/bin/sh\nbad line\nvcap:x:2000:2001:vcap:/home/vcap:/bin/bash\nweb:x:33:33::/var/www:/bin/sh\n"
	groupText  = "root:x:0:\nadm:x:4:syslog,web\nbad\nwww:x:x:web\nvideo:x:44:web\n"
)

func TestResolveUser(t *testing.T) {
	tests := []struct {
		name string
		want user
		err  string
	}{
		{"", user{UID: 2000, GID: 2001, Name: "vcap", Home: "/home/vcap"}, ""},
		{"web", user{UID: 33, GID: 33, Groups: []uint32{4, 44}, Name: "web", Home: "/var/www"}, ""},
		{"33", user{UID: 33, GID: 33, Groups: []uint32{4, 44}, Name: "web", Home: "/var/www"}, ""},
		{"33:7", user{UID: 33, GID: 7, Name: "web", Home: "/var/www"}, ""},
		{"web:video", user{UID: 33, GID: 44, Name: "web", Home: "/var/www"}, ""},
		{"web:4711", user{UID: 33, GID: 4711, Name: "web", Home: "/var/www"}, ""},
		{"5:adm", user{UID: 5, GID: 4, Home: "/"}, ""},
		{"5:6", user{UID: 5, GID: 6, Home: "/"}, ""},
		{"5", user{UID: 5, Home: "/"}, ""},
		{"nobody", user{}, `no user "nobody" in the root filesystem`},
		{"nobody:adm", user{}, `no user "nobody:adm" in the root filesystem`},
		{"web:none", user{}, `no group of the user "web:none" in the root filesystem`},
		{"5:", user{}, `no group of the user "5:" in the root filesystem`},
	}
	for _, tt := range tests {
		got, err := resolveUser(tt.name, passwdText, groupText)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.name, diff)
		}
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: got error %v; want %q", tt.name, err, tt.err)
		}
	}
	for name, want := range map[string]user{"": vcap, "root": {Name: "root", Home: "/root"}} {
		if got, err := resolveUser(name, "", ""); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q without a passwd file: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	for name, want := range map[string]tree.Owner{"": {UID: 2000, GID: 2000}, "web": {UID: 2000, GID: 2000}, "7:8": {UID: 7, GID: 8}} {
		if got := layerOwner(name); got != want {
			t.Errorf("%q: got %v; want %v", name, got, want)
		}
	}
}

// TestNumbersAreNoNames holds that no image makes a number mean root, by calling
// root so (CVE-2016-3697, CVE-2026-46680) or by a number too large (CVE-2024-40635).
func TestNumbersAreNoNames(t *testing.T) {
	const passwd = "1000:x:0:0::/root:/bin/sh\n4294967296:x:0:0::/root:/bin/sh\n99999999999999999999:x:0:0::/root:/bin/sh\n-1:x:5:5::/:/bin/sh\n"
	const group = "1000:x:0:\n4294967296:x:0:\nbig:x:4294967296:\n"
	for name, want := range map[string]user{
		"1000": {UID: 1000, Home: "/"}, "1000:1000": {UID: 1000, GID: 1000, Home: "/"}, "4294967295": {UID: 4294967295, Home: "/"},
	} {
		if got, err := resolveUser(name, passwd, group); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"4294967296", "99999999999999999999", "0x0", "4294967296:0", "1000:4294967296", "1000:big"} {
		if got, err := resolveUser(name, passwd, group); err == nil {
			t.Errorf("%s: got %+v; want it refused", name, got)
		}
	}
}

// TestHugeAccounts holds that an image's accounts take little memory, however large they are (CVE-2025-4437) and however
// many groups a user is in (CVE-2026-47262).
func TestHugeAccounts(t *testing.T) {
	dir := t.TempDir()
	b := &build{instance: &instance{cell: &Cell{cfg: Config{RootFS: fakeRoots{&machine{host: &host{dir: dir}}}}}}}
	etc := filepath.Join(dir, b.guid(), "etc")
	groups := "evil:x:7:web\n" + strings.Repeat("g:x:7:web\n", 1<<20)
	if err := errors.Join(os.MkdirAll(etc, 0o700), os.WriteFile(filepath.Join(etc, "passwd"), []byte(passwdText), 0o600), os.Truncate(filepath.Join(etc, "passwd"), 1<<40),
		os.WriteFile(filepath.Join(etc, "group"), []byte(groups), 0o600)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	u, err := b.lookUp("web")
	runtime.ReadMemStats(&after)
	if err != nil || u.UID != 33 || len(u.Groups) == 0 || len(u.Groups) > 1<<17 {
		t.Errorf("got user %d in %d groups, %v; want 33 in some", u.UID, len(u.Groups), err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
		t.Errorf("took %d MiB", taken>>20)
	}
}

func FuzzResolveUser(f *testing.F) {
	f.Add("web", passwdText, groupText)
	f.Add("33:7", passwdText, groupText)
	f.Fuzz(func(t *testing.T, name, passwd, group string) {
		if u, err := resolveUser(name, passwd, group); err != nil && !cmp.Equal(u, user{}) {
			t.Errorf("got %+v with error %v; want no user", u, err)
		}
	})
}
