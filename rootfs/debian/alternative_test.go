package debian

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAlternatives(t *testing.T) {
	script := `#!/bin/sh
update-alternatives --quiet --install /usr/bin/cc cc /usr/bin/gcc 20 \
    #--slave /usr/share/man/man1/cc.1.gz cc.1.gz /usr/share/man/man1/gcc.1.gz
if true; then update-alternatives --install "/usr/bin/nc" 'nc' /bin/nc.openbsd 50 --slave /bin/netcat netcat /bin/nc.openbsd || true; fi
update-alternatives --install /usr/bin/$x x /usr/bin/x 1
update-alternatives --install /usr/bin/lzma lzma /usr/bin/xz 20 $(slave a)
update-alternatives --remove w /usr/bin/w
    for p in php phar; do # a loop
        update-alternatives --install /usr/bin/${p} $p \
            /usr/bin/$p-8 82
    done
for i in $tools; do
	update-alternatives --install /usr/bin/$i $i /usr/lib/$i 1
done
update-alternatives --install relative x /usr/bin/x 1
update-alternatives --install /usr/bin/x x /usr/bin/x many
`
	want := []alternative{
		{link: "/usr/bin/cc", name: "cc", path: "/usr/bin/gcc", priority: 20},
		{link: "/usr/bin/nc", name: "nc", path: "/bin/nc.openbsd", priority: 50, slaves: []alternative{{link: "/bin/netcat", name: "netcat", path: "/bin/nc.openbsd"}}},
		{link: "/usr/bin/lzma", name: "lzma", path: "/usr/bin/xz", priority: 20},
		{link: "/usr/bin/php", name: "php", path: "/usr/bin/php-8", priority: 82},
		{link: "/usr/bin/phar", name: "phar", path: "/usr/bin/phar-8", priority: 82},
	}
	if diff := cmp.Diff(want, parseAlternatives(script), cmp.AllowUnexported(alternative{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseAlternatives(f *testing.F) {
	f.Add("update-alternatives --install /a a /b 1 --slave /c c /d\n")
	f.Fuzz(func(t *testing.T, script string) {
		for _, a := range parseAlternatives(script) {
			if !strings.HasPrefix(a.link, "/") || !strings.HasPrefix(a.path, "/") {
				t.Errorf("%q: got %+v", script, a)
			}
		}
	})
}

func TestFinishAlternatives(t *testing.T) {
	tr := testTree(t)
	for _, name := range []string{"usr/bin/xz", "usr/bin/unxz", "usr/bin/xzcat",
		"usr/lib/jvm/java-17/bin/java", "usr/bin/nc.a", "usr/bin/nc.b", "usr/bin/kill.procps", "usr/bin/taken.real"} {
		if err := tr.put(name, 0o755, nil); err != nil {
			t.Fatal(err)
		}
	}
	owned := tr.own(0o755)
	owned.owner = "someone"
	if _, err := tr.write("usr/bin/taken", owned, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	packages := []*installed{
		{LockedPackage: LockedPackage{Name: "xz-utils"}},
		{LockedPackage: LockedPackage{Name: "procps"}},
		{LockedPackage: LockedPackage{Name: "openjdk-17-jre-headless"}, shipped: []string{"/usr/lib/jvm/java-17/bin/java", "/usr/lib/jvm/java-17/lib/x"}},
		{LockedPackage: LockedPackage{Name: "nc"}, members: map[string][]byte{"postinst": []byte(
			"update-alternatives --install /usr/bin/nc nc /usr/bin/nc.a 10\nupdate-alternatives --install /usr/bin/nc nc /usr/bin/nc.b 30\n" +
				"update-alternatives --install /usr/bin/taken taken /usr/bin/taken.real 1\nupdate-alternatives --install /usr/bin/gone gone /usr/bin/gone.real 1\n")}},
	}
	if err := finishAlternatives(tr, packages); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{
		"usr/bin/lzma": "/usr/bin/xz", "usr/bin/lzcat": "/usr/bin/xzcat", "usr/bin/java": "/usr/lib/jvm/java-17/bin/java", "usr/bin/nc": "/usr/bin/nc.b", "usr/bin/kill": "/usr/bin/kill.procps",
	} {
		got := tr.nodes["etc/alternatives/"+filepath.Base(link)]
		if n := tr.nodes[link]; n == nil || n.target != "/etc/alternatives/"+filepath.Base(link) || got == nil || got.target != want {
			t.Errorf("%s: got %v by way of %v; want %s", link, got, n, want)
		}
	}
	for _, absent := range []string{"usr/bin/gone", "usr/bin/lzgrep", "etc/alternatives/taken"} {
		if tr.nodes[absent] != nil {
			t.Errorf("got %s; want none", absent)
		}
	}
	state, err := tr.read("var/lib/dpkg/alternatives/nc")
	if want := "auto\n/usr/bin/nc\n\n/usr/bin/nc.a\n10\n/usr/bin/nc.b\n30\n\n"; err != nil || string(state) != want {
		t.Errorf("got %q, %v; want %q", state, err, want)
	}
}
