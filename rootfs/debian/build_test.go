package debian

import (
	"archive/tar"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// base is a small system with all the traps of unpacking.
func base() []testDeb {
	return []testDeb{
		{
			name: "base-files", version: "12", fields: "Essential: yes\nMulti-Arch: foreign\n", compress: ".xz",
			files: []tar.Header{
				dir("./bin", 0o755), dir("./etc", 0o755), dir("./tmp", 0o1777), dir("./var", 0o755), dir("./var/run", 0o755), dir("./root", 0o700),
				file("./bin/tool", 0o4755), file("./etc/debian_version", 0o644), file("./etc/ssl/openssl.cnf", 0o644),
				file("./usr/share/base-files/profile", 0o644), file("./usr/share/doc/base-files/changelog.gz", 0o644),
				file("./usr/share/doc/base-files/copyright", 0o644), file("./usr/share/man/man1/tool.1.gz", 0o644),
				symlink("./etc/os-release", "../usr/lib/os-release"), file("./lib/os-release", 0o644),
			},
			content: map[string]string{"./bin/tool": "#!tool", "./etc/debian_version": "12\n", "./lib/os-release": "ID=test\n",
				"./etc/ssl/openssl.cnf": "x = y\n"},
			scripts: map[string]string{"conffiles": "/etc/debian_version\n"},
		},
		{
			name: "base-passwd", version: "3", fields: "Essential: yes\nDepends: libx (>= 1:1.0)\n", compress: ".zst",
			files: []tar.Header{file("./usr/share/base-passwd/passwd.master", 0o644), file("./usr/share/base-passwd/group.master", 0o644)},
			content: map[string]string{
				"./usr/share/base-passwd/passwd.master": "root:*:0:0:root:/root:/bin/bash\nnobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
				"./usr/share/base-passwd/group.master":  "root:*:0:\nshadow:*:42:\n",
			},
		},
		{
			name: "dash", version: "1", fields: "Essential: yes\n", compress: ".gz",
			files:   []tar.Header{symlink("./bin", "usr/bin"), file("./bin/dash", 0o755), hardlink("./usr/bin/dash2", "./bin/dash")},
			content: map[string]string{"./bin/dash": "dash"},
		},
		{
			name: "libx", version: "1:1.2-3", fields: "Provides: virtual\nReplaces: base-files\nMulti-Arch: same\n",
			files: []tar.Header{
				file("./usr/bin/tool", 0o755), file("./usr/share/ca-certificates/mozilla/B.crt", 0o644),
				file("./usr/share/ca-certificates/mozilla/A.crt", 0o644), dir("./usr/lib/locale/C.utf8", 0o755), file("./usr/bin/awk.real", 0o755),
				dir("./etc/pam.d", 0o755), file("./usr/share/pam/common-auth", 0o644), file("./usr/share/pam/common-session-noninteractive", 0o644),
			},
			content: map[string]string{"./usr/bin/tool": "libx's",
				"./usr/share/pam/common-auth": "# first\n$auth_primary\n# more\n$auth_additional\n# end\n", "./usr/share/pam/common-session-noninteractive": "$session_nonint_primary\n$session_nonint_additional\n", "./usr/share/ca-certificates/mozilla/A.crt": "AAA\n",
				"./usr/share/ca-certificates/mozilla/B.crt": "BBB"},
			scripts: map[string]string{"postinst": "#!/bin/sh\nupdate-alternatives --install /usr/bin/awk awk \\\n  /usr/bin/awk.real 5 # awk\n"},
		},
		{name: "unwanted", version: "1"},
	}
}

func TestBuildMakesAWholeSystem(t *testing.T) {
	a := newTestArchive(t, base()...)
	a.publish(t, "test-security", ".xz", testDeb{name: "libx", version: "1:1.2-3+deb1", fields: base()[3].fields, files: base()[3].files, content: base()[3].content, scripts: base()[3].scripts})
	var steps []Step
	o := a.options(t)
	o.Progress = func(p Progress) { steps = append(steps, p.Step) }
	r, err := a.build(t, o)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"usr/bin/tool":                            "libx's", // libx replaces base-files' file
		"bin/tool":                                "libx's",
		"usr/bin/dash2":                           "dash",
		"etc/os-release":                          "ID=test\n",
		"etc/ssl/certs/ca-certificates.crt":       "AAA\nBBB\n",
		"etc/ca-certificates.conf":                "mozilla/A.crt\nmozilla/B.crt\n",
		"etc/ssl/openssl.cnf":                     "x = y\n\n.include /tmp/app/openssl.cnf\n.include /home/vcap/app/openssl.cnf\n",
		"etc/passwd":                              "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nvcap:x:2000:2000::/home/vcap:/bin/bash\n",
		"etc/group":                               "root:x:0:\nshadow:x:42:\nvcap:x:2000:\n",
		"usr/share/doc/base-files/copyright":      "",
		"etc/pam.d/common-auth":                   "# first\nauth\t[success=1 default=ignore]\tpam_unix.so nullok\n# more\n# end\n",
		"etc/pam.d/common-session-noninteractive": "session\t[default=1]\t\t\tpam_permit.so\nsession\trequired\tpam_unix.so\n",
		"var/lib/dpkg/info/base-files.list":       "/bin\n/etc\n/tmp\n/var\n/var/run\n/root\n/bin/tool\n/etc/debian_version\n/etc/ssl/openssl.cnf\n/usr/share/base-files/profile\n/usr/share/doc/base-files/changelog.gz\n/usr/share/doc/base-files/copyright\n/usr/share/man/man1/tool.1.gz\n/etc/os-release\n/lib/os-release\n",
		"var/lib/dpkg/alternatives/awk":           "auto\n/usr/bin/awk\n\n/usr/bin/awk.real\n5\n\n",
		"var/lib/dpkg/info/libx:amd64.postinst":   base()[3].scripts["postinst"],
	} {
		got, err := os.ReadFile(filepath.Join(r.Dir, path))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{
		"bin": "usr/bin", "lib64": "usr/lib64", "app": "/home/vcap/app", "usr/bin/sh": "dash", "var/run": "/run", "usr/bin/awk": "/etc/alternatives/awk",
		"etc/alternatives/awk": "/usr/bin/awk.real", "usr/lib/locale/en_US.utf8": "C.utf8",
	} {
		if got, err := os.Readlink(filepath.Join(r.Dir, path)); got != want {
			t.Errorf("%s: got link to %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]fs.FileMode{
		"tmp": fs.ModeDir | fs.ModeSticky | 0o777, "root": fs.ModeDir | 0o700, "etc/debian_version": 0o644, "etc/shadow": 0o640, "home/vcap/app": fs.ModeDir | 0o755,
	} {
		if info, err := os.Stat(filepath.Join(r.Dir, path)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v; want %v", path, info, err, want)
		}
	}
	for _, path := range []string{"usr/share/doc/base-files/changelog.gz", "usr/share/man/man1/tool.1.gz", "var/lib/dpkg/info/unwanted.list"} {
		if _, err := os.Lstat(filepath.Join(r.Dir, path)); err == nil {
			t.Errorf("got %s; want it left out", path)
		}
	}
	status, _ := os.ReadFile(filepath.Join(r.Dir, "var/lib/dpkg/status"))
	want := "Package: base-files\nStatus: install ok installed\nVersion: 12\nArchitecture: amd64\nEssential: yes\nMulti-Arch: foreign\n" +
		"Conffiles:\n /etc/debian_version 2737b49252e2a4c0fe4c342e92b13285\n\n"
	if !strings.HasPrefix(string(status), want) {
		t.Errorf("got status %q; want it to start with %q", status, want)
	}
	if got := r.Lock.Packages[3]; got.Version != "1:1.2-3+deb1" || got.Archive != "test-security" {
		t.Errorf("got %v; want the newer libx of test-security", got)
	}
	if r.Packages != 4 || len(r.Warnings) != 0 || !slices.Contains(steps, stepUnpack) || steps[len(steps)-1] != stepFinish {
		t.Errorf("got %d packages, warnings %q, steps %q", r.Packages, r.Warnings, steps)
	}
}

func TestBuildFromLockIsIdentical(t *testing.T) {
	a := newTestArchive(t, base()...)
	o := a.options(t)
	first, err := a.build(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Warnings) != 1 || !strings.Contains(first.Warnings[0], "built without test-security") {
		t.Errorf("got warnings %q; want one about test-security", first.Warnings)
	}
	var text strings.Builder
	if _, err := first.Lock.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	newer := base()
	newer[3].version = "1:9"
	a.publish(t, "test", ".gz", newer...)
	again := a.options(t) // with an empty cache
	again.Lock = first.Lock
	second, err := a.build(t, again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Lock, second.Lock); diff != "" {
		t.Error(diff)
	}
	if a, b := fingerprintTree(t, first.Dir), fingerprintTree(t, second.Dir); a != b {
		t.Errorf("got tree %s; want %s", b, a)
	}
}

func TestBuildUsesTheCache(t *testing.T) {
	a := newTestArchive(t, base()...)
	o := a.options(t)
	if _, err := a.build(t, o); err != nil {
		t.Fatal(err)
	}
	o.Dest += "2"
	if _, err := a.build(t, o); err != nil {
		t.Fatal(err)
	}
	if got := a.asks(".deb"); got != 4 {
		t.Errorf("got %d downloads of packages; want 4", got)
	}
	if got := a.asks("Packages.gz"); got != 1 {
		t.Errorf("got %d downloads of the index; want 1", got)
	}
}

func TestBuildRefusesHostilePackages(t *testing.T) {
	evil := func(h tar.Header) testDeb {
		return testDeb{name: "evil", version: "1", fields: "Essential: yes\n", files: []tar.Header{h}}
	}
	tests := []struct {
		name string
		deb  testDeb
		want string
	}{
		{"parent", evil(file("../../outside", 0o644)), "name goes up"},
		{"hidden parent", evil(file("./usr/../../outside", 0o644)), "name goes up"},
		{"absolute", evil(file("/outside", 0o644)), "not below the root"},
		{"link out", evil(symlink("./usr/out", "../../../outside")), "leads out of the tree"},
		{"device", evil(tar.Header{Name: "./dev/sda", Typeflag: tar.TypeBlock}), "only files, directories and links"},
		{"null", evil(tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar}), "only files, directories and links"},
		{"fifo", evil(tar.Header{Name: "./pipe", Typeflag: tar.TypeFifo}), "only files, directories and links"},
		{"hard link out", evil(hardlink("./passwd", "../../../etc/passwd")), "name goes up"},
		{"hard link to nothing", evil(hardlink("./passwd", "./etc/passwd")), "not a file of the package"},
		{"hard link to another's", evil(hardlink("./evil", "./usr/bin/tool")), "not a file of the package"},
		{"another's file", evil(file("./usr/bin/dash", 0o755)), "neither replaces the other"},
		{"file over directory", evil(file("./etc", 0o755)), "is a directory"},
		{"directory over file", evil(dir("./usr/bin/dash", 0o755)), "is not a directory"},
		{"through a link", testDeb{name: "evil", version: "1", fields: "Essential: yes\n", files: []tar.Header{
			symlink("./usr/self", "self"), file("./usr/self/x", 0o644)}}, "too many symbolic links"},
		{"no archive", testDeb{name: "evil", version: "1", fields: "Essential: yes\n", compress: ".lzma"}, "not gzip, xz or zstd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newTestArchive(t, append(base(), test.deb)...)
			o := a.options(t)
			outside := filepath.Join(filepath.Dir(filepath.Dir(o.Dest)), "outside")
			_, err := a.build(t, o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %q", err, test.want)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("got a file outside of the tree")
			}
			wantNothing(t, filepath.Dir(o.Dest))
		})
	}
}

// Links that lead through the tree's own root are no way out.
func TestAbsoluteLinksStayInside(t *testing.T) {
	out := t.TempDir()
	a := newTestArchive(t, append(base(), testDeb{name: "zlinks", version: "1", fields: "Essential: yes\n", files: []tar.Header{
		symlink("./usr/away", out), file("./usr/away/x", 0o644)}})...)
	r, err := a.build(t, a.options(t))
	if err != nil {
		t.Fatal(err)
	}
	wantNothing(t, out)
	if _, err := os.Lstat(filepath.Join(r.Dir, out, "x")); err != nil {
		t.Errorf("got %v; want the file below the tree's own root", err)
	}
}

// wantNothing fails if dir has any entry.
func wantNothing(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v in %s; want nothing left", entries, err, dir)
	}
}

func TestBuildTellsWhatIsWrong(t *testing.T) {
	a := newTestArchive(t, base()...)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no mirror", func(o *Options) { o.Mirror = "" }, "no Debian mirror for test in the host's apt sources: pass --mirror URL"},
		{"bad mirror", func(o *Options) { o.Mirror = "ftp://example.org" }, "not an http or https URL"},
		{"absent mirror", func(o *Options) { o.Mirror += "/nowhere" }, "not found on the mirror"},
		{"no keyring", func(o *Options) { o.Keyrings = []string{"/nonexistent"} }, "read keyring /nonexistent"},
		{"unknown package", func(o *Options) { o.Packages = []string{"nonesuch"} }, "the suite has no package nonesuch"},
		{"unknown variant", func(o *Options) { o.Variant = "big" }, `variant "big" is not known`},
		{"other architecture", func(o *Options) { o.Arch = "arm64" }, "has it packages for this architecture?"},
		{"occupied", func(o *Options) { o.Dest = full }, "is not empty"},
		{"no destination", func(o *Options) { o.Dest = "" }, "no destination"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := a.options(t)
			test.change(&o)
			if _, err := a.build(t, o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %q", err, test.want)
			}
		})
	}
	if _, err := Build(t.Context(), Options{Suite: "slink", Dest: full}); err == nil || !strings.Contains(err.Error(), "choose one of debian12") {
		t.Errorf("got %v; want the names of the suites", err)
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	a := newTestArchive(t, base()...)
	o := a.options(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	o.Progress = func(p Progress) {
		if p.Step == stepUnpack {
			cancel(stop)
		}
	}
	if _, err := build(ctx, o, a.suite, fstest.MapFS{}); !errors.Is(err, stop) {
		t.Errorf("got %v; want %v", err, stop)
	}
	wantNothing(t, filepath.Dir(o.Dest))
}

func TestLockIsExact(t *testing.T) {
	a := newTestArchive(t, base()...)
	first, err := a.build(t, a.options(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*Lock)
		want   string
	}{
		{"gone", func(l *Lock) {
			l.Packages[0].Filename = "pool/gone.deb"
			l.Packages[0].SHA256 = strings.Repeat("0", 64)
		}, "mirrors drop replaced versions"},
		{"other hash", func(l *Lock) { l.Packages[0].SHA256 = strings.Repeat("0", 64) }, "sha256 is"},
		{"other version", func(l *Lock) { l.Packages[0].Version = "13" }, "the file is package"},
		{"escape", func(l *Lock) { l.Packages[0].Filename = "../secret" }, "is not usable"},
		{"other pocket", func(l *Lock) { l.Packages[0].Archive = "elsewhere" }, "is not usable"},
		{"twice", func(l *Lock) { l.Packages[1] = l.Packages[0] }, "out of order or twice"},
		{"empty", func(l *Lock) { l.Packages = nil }, "no packages"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := *first.Lock
			l.Packages = slices.Clone(l.Packages)
			test.change(&l)
			o := a.options(t)
			o.Lock = &l
			if _, err := a.build(t, o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %q", err, test.want)
			}
		})
	}
}

// TestBuildWithoutExtras holds that a tree has nothing besides its packages unless Extras names it.
func TestBuildWithoutExtras(t *testing.T) {
	a := newTestArchive(t, base()...)
	o := a.options(t)
	o.Extras = Extras{}
	r, err := a.build(t, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home/vcap", "app", "usr/lib/locale/en_US.utf8", "etc/default/locale"} {
		if _, err := os.Lstat(filepath.Join(r.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v; want no such file", name, err)
		}
	}
	for name, never := range map[string]string{"etc/passwd": "vcap", "etc/group": "vcap", "etc/ssl/openssl.cnf": ".include"} {
		if text, err := os.ReadFile(filepath.Join(r.Dir, name)); err != nil || strings.Contains(string(text), never) {
			t.Errorf("%s: got %q, %v; want no %s", name, text, err, never)
		}
	}
}
