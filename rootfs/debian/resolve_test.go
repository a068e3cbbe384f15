package debian

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// catalogOf reads stanzas in a short form, "name version: Field: value; Field: value".
func catalogOf(t *testing.T, archives ...string) *catalog {
	t.Helper()
	var indexes [][]*available
	for _, text := range archives {
		var index strings.Builder
		for line := range strings.Lines(text) {
			head, fields, _ := strings.Cut(strings.TrimSpace(line), ": ")
			name, version, ok := strings.Cut(head, " ")
			if !ok {
				continue
			}
			index.WriteString("Package: " + name + "\nVersion: " + version + "\nArchitecture: amd64\nFilename: x\nSize: 1\nSHA256: " + sum(nil) + "\n")
			for f := range strings.SplitSeq(fields, "; ") {
				if f != "" {
					index.WriteString(f + "\n")
				}
			}
			index.WriteString("\n")
		}
		packages, err := parsePackages(index.String(), "amd64", "test")
		if err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, packages)
	}
	c, err := newCatalog(indexes...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResolve(t *testing.T) {
	archive := `
		base 1: Essential: yes; Pre-Depends: awk
		gawk 1: Provides: awk; Depends: libmpfr
		mawk 1: Provides: awk
		libmpfr 1
		app 1: Depends: libc (>= 2), tool | other-tool, virtual
		libc 2
		other-tool 1
		prov-b 1: Provides: virtual
		prov-a 1: Provides: virtual
		picky 1: Depends: virtual (>= 2)
		prov-v 1: Provides: virtual (= 2.5)
		any 1: Depends: python3:any (>= 3)
		python3 3.11
		loop-a 1: Depends: loop-b
		loop-b 1: Depends: loop-a
		broken 1: Depends: middle
		middle 1: Depends: libc (>= 9)
		foe 1: Conflicts: libc (<< 3)
		rival-a 1: Conflicts: mta; Provides: mta
		rival-b 1: Breaks: mta; Provides: mta
	`
	tests := []struct {
		wanted []string
		want   string // names, or the start of the error
	}{
		{nil, "base mawk"},
		{[]string{"gawk"}, "base gawk libmpfr"},
		{[]string{"app"}, "app base libc mawk other-tool prov-a"},
		{[]string{"prov-b", "app"}, "app base libc mawk other-tool prov-b"},
		{[]string{"picky"}, "base mawk picky prov-v"},
		{[]string{"any"}, "any base mawk python3"},
		{[]string{"loop-b"}, "base loop-a loop-b mawk"},
		{[]string{"virtual"}, "base mawk prov-a"},
		{[]string{"rival-a"}, "base mawk rival-a"},
		{[]string{"nope", "nothing"}, "error: the suite has no package nope, nothing"},
		{[]string{"broken"}, `error: nothing in the suite satisfies "libc (>= 9)" of middle (wanted by broken)`},
		{[]string{"foe", "app"}, `error: foe conflicts with libc (wanted by app) by "libc (<< 3)"`},
		{[]string{"rival-a", "rival-b"}, `error: rival-a conflicts with rival-b by "mta"`},
	}
	for _, test := range tests {
		set, err := resolve(catalogOf(t, archive), selection{packages: test.wanted, prefer: []string{"mawk", "usr-is-merged"}})
		var got []string
		for _, a := range set {
			got = append(got, a.name)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != test.want {
			t.Errorf("%q: got %s; want %s", test.wanted, text, test.want)
		}
	}
}

func TestCatalogTakesTheNewest(t *testing.T) {
	c := catalogOf(t, "aa 1.9\nbb 1:1\n", "aa 1.10\nbb 2\n")
	if got := c.byName["aa"].version + " " + c.byName["bb"].version; got != "1.10 1:1" {
		t.Errorf("got %s; want 1.10 1:1", got)
	}
}

func TestParsePackagesRefuses(t *testing.T) {
	good := "Package: aa\nVersion: 1\nArchitecture: amd64\nFilename: pool/a.deb\nSize: 1\nSHA256: " + sum(nil) + "\n"
	if all, err := parsePackages(good+"\n"+strings.Replace(good, "amd64", "i386", 1), "amd64", "test"); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v; want the amd64 package alone", all, err)
	}
	for _, change := range [][2]string{
		{"Package: aa\n", "Package: ../a\n"}, {"pool/a.deb", "pool/../../a.deb"}, {"pool/a.deb", "/a.deb"}, {"pool/a.deb", "a.deb?x"}, {"Size: 1", "Size: -1"},
		{"Size: 1", "Size: x"}, {"Version: 1", "Version:"}, {sum(nil), "abc"}, {sum(nil), strings.Repeat("/", 64)},
	} {
		if all, err := parsePackages(strings.Replace(good, change[0], change[1], 1), "amd64", "test"); err == nil {
			t.Errorf("%q: got %v; want an error", change[1], all)
		}
	}
}

func FuzzParsePackages(f *testing.F) {
	f.Add("Package: aa\nVersion: 1\nArchitecture: amd64\nFilename: pool/a.deb\nSize: 1\nSHA256: " + sum(nil) + "\nDepends: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parsePackages(text, "amd64", "test")
		if err != nil {
			return
		}
		for _, a := range all {
			if a.name == "" || a.digest.size <= 0 || strings.HasPrefix(a.filename, "/") || slices.Contains(strings.Split(a.filename, "/"), "..") {
				t.Errorf("got %+v", a)
			}
		}
		if c, err := newCatalog(all); err == nil {
			resolve(c, selection{})
		}
	})
}

func FuzzParseRelease(f *testing.F) {
	f.Add("Suite: stable\nCodename: x\nDate: Sat, 11 Jul 2026 10:16:37 UTC\nSHA256:\n " + sum(nil) + " 0 main/x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseRelease(text); err == nil && (r.date.IsZero() || len(r.files) == 0) {
			t.Errorf("got %+v", r)
		}
	})
}

func TestLocksRoundTrip(t *testing.T) {
	text := `{"version":1,"suite":"debian12","variant":"core","arch":"amd64","date":"2026-01-02T03:04:05Z","packages":[
		{"name":"bash","version":"5","arch":"amd64","sha256":"` + sum(nil) + `","size":1,"filename":"pool/b.deb","archive":"bookworm"}]}`
	l, err := ReadLock(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := l.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ReadLock(strings.NewReader(b.String()))
	if diff := cmp.Diff(l, again); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, change := range [][2]string{
		{`"version":1,`, `"version":2,`}, {`debian12`, `slink`}, {`"bookworm"`, `"trixie"`}, {`"arch":"amd64","sha`, `"arch":"i386","sha`}, {`"size":1`, `"size":0`},
		{`"suite"`, `"sweet"`}, {`pool/b.deb`, `../b.deb`}, {`{"version"`, `["version"`}, {`2026-01-02T03:04:05Z`, `0001-01-01T00:00:00Z`},
	} {
		if _, err := ReadLock(strings.NewReader(strings.Replace(text, change[0], change[1], 1))); err == nil {
			t.Errorf("%s: got no error", change[1])
		}
	}
}

func TestResolveWithout(t *testing.T) {
	c := catalogOf(t, `
		app 1: Depends: libc, libjit15, other | libjit15
		libc 1
		libjit15 1: Depends: large
		large 1
		other 1
	`)
	set, err := resolve(c, selection{packages: []string{"app"}, without: []string{"libjit*", "["}})
	if err != nil || len(set) != 3 || set[0].name != "app" || set[1].name != "libc" || set[2].name != "other" {
		t.Errorf("got %v, %v; want app, libc and other", set, err)
	}
}
