package debian

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestReadSources(t *testing.T) {
	fsys := fstest.MapFS{
		"etc/apt/sources.list": {Data: []byte(`# a comment
deb http://one.example/debian bookworm main contrib # more
deb [arch=amd64 Signed-By=/k/debian-archive-keyring.gpg,/k/b.gpg] https://two.example/debian/ bookworm-updates main
deb-src http://one.example/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb	[ trusted=yes ]	http://three.example/ ./
debx http://no.example x y
deb
`)},
		"etc/apt/sources.list.d/b.sources": {Data: []byte(`Types: deb deb-src
# a comment
URIs: mirror+file:/etc/apt/mirrors/debian.list http://four.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBG
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://off.example
Suites: bookworm
Enabled: no

Types: deb-src
URIs: http://src.example
Suites: bookworm
`)},
		"etc/apt/sources.list.d/a.list": {Data: []byte("deb http://five.example/ubuntu jammy universe\n")},
		"etc/apt/mirrors/debian.list":   {Data: []byte("http://six.example/debian\tpriority:1\n\nfile:/x\n")},
	}
	got, err := readSources(fsys)
	if err != nil {
		t.Fatal(err)
	}
	want := []source{
		{uris: []string{"http://one.example/debian"}, suites: []string{"bookworm"}, components: []string{"main", "contrib"}},
		{uris: []string{"https://two.example/debian/"}, suites: []string{"bookworm-updates"}, components: []string{"main"},
			signedBy: []string{"/k/debian-archive-keyring.gpg", "/k/b.gpg"}},
		{suites: []string{"bookworm"}, components: []string{"main"}},
		{uris: []string{"http://three.example/"}, suites: []string{"./"}, components: []string{}},
		{uris: []string{"http://five.example/ubuntu"}, suites: []string{"jammy"}, components: []string{"universe"}},
		{uris: []string{"http://six.example/debian", "http://four.example/debian"}, suites: []string{"bookworm", "bookworm-updates"},
			components: []string{"main"}, signedBy: []string{}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(source{})); diff != "" {
		t.Error(diff)
	}
	fsys["etc/apt/sources.list.d/c.sources"] = &fstest.MapFile{Data: []byte("broken")}
	if _, err := readSources(fsys); err == nil || !strings.Contains(err.Error(), "read /etc/apt/sources.list.d/c.sources: line 1") {
		t.Errorf("got %v; want the file and the line", err)
	}
}

func FuzzParseSources(f *testing.F) {
	f.Add("Types: deb\nURIs: http://x.example\nSuites: a b\n")
	f.Add("deb [a=b signed-by=/x] http://x.example a b\n")
	f.Add("deb [\ndeb ]\ndeb [] x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range parseSourceList(text) {
			if len(s.uris) != 1 || len(s.suites) != 1 {
				t.Errorf("%q: got %v; want one URI and one suite", text, s)
			}
		}
		if all, err := parseSources(text); err == nil {
			for _, s := range all {
				for _, k := range s.signedBy {
					if k[0] != '/' {
						t.Errorf("%q: got keyring %q; want a path", text, k)
					}
				}
			}
		}
	})
}

func TestMirrors(t *testing.T) {
	host := []source{
		{uris: []string{"https://vendor.example/debian/12/prod"}, suites: []string{"bookworm"}, components: []string{"main"}},
		{uris: []string{"https://vendor.example/node"}, suites: []string{"nodistro"}, components: []string{"main"}},
		{uris: []string{"http://deb.example/debian/"}, suites: []string{"bookworm", "bookworm-updates"}, components: []string{"main"},
			signedBy: []string{"/usr/share/keyrings/debian-archive-keyring.gpg"}},
		{uris: []string{"http://sec.example/debian-security"}, suites: []string{"bookworm-security"}, components: []string{"main"}},
		{uris: []string{"http://ubuntu.example/ubuntu"}, suites: []string{"noble"}, components: []string{"main", "universe"}},
		{uris: []string{"http://contrib.example/"}, suites: []string{"bookworm"}, components: []string{"contrib"}},
	}
	tests := []struct {
		suite  string
		pocket int
		o      Options
		want   []string
	}{
		{"debian12", 0, Options{}, []string{"http://deb.example/debian", "https://vendor.example/debian/12/prod"}},
		{"debian12", 2, Options{}, []string{"http://sec.example/debian-security"}},
		{"debian13", 0, Options{}, []string{"http://deb.example/debian", "https://vendor.example/debian/12/prod"}},
		{"debian13", 2, Options{}, []string{"http://sec.example/debian-security"}},
		{"jammy", 0, Options{}, []string{"http://ubuntu.example/ubuntu"}},
		{"jammy", 2, Options{}, []string{"http://ubuntu.example/ubuntu"}},
		{"debian12", 0, Options{Mirror: "https://m.example/x/debian/"}, []string{"https://m.example/x/debian"}},
		{"debian12", 2, Options{Mirror: "https://m.example/x/debian/"}, []string{"https://m.example/x/debian-security"}},
		{"debian12", 2, Options{Mirror: "https://m.example/debian", SecurityMirror: "http://s.example"}, []string{"http://s.example"}},
		{"noble", 2, Options{Mirror: "http://m.example/ubuntu"}, []string{"http://m.example/ubuntu"}},
	}
	for _, test := range tests {
		s, err := lookupSuite(test.suite)
		if err != nil {
			t.Fatal(err)
		}
		p := s.pockets[test.pocket]
		got, err := mirrors(test.o, s, p, host)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s of %q: %s", p.name, test.o.Mirror, diff)
		}
	}
	s, _ := lookupSuite("noble")
	if got, err := mirrors(Options{}, s, s.pockets[0], host[:4]); err == nil || !strings.Contains(err.Error(), "no Ubuntu mirror for noble") {
		t.Errorf("got %v, %v; want no Ubuntu mirror", got, err)
	}
}
