package debian

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

func TestCompareLibraries(t *testing.T) {
	// In falling order, as ldconfig writes them: a digit is more than any letter.
	order := []string{"lib9.so", "libz.so.1", "libxyz.so", "libssl.so.3", "libc.so.10", "libc.so.6", "libc.so", "libc-2.so", "lib"}
	for i, a := range order {
		for j, b := range order {
			got := compareLibraries(a, b)
			if i < j && got <= 0 || i > j && got >= 0 || i == j && got != 0 {
				t.Errorf("compare %s with %s: got %d", a, b, got)
			}
		}
	}
}

func TestEncodeLibraries(t *testing.T) {
	raw := encodeLibraries([]library{{"liba.so.1", "/lib/liba.so.1", 0x303}, {"libb.so.1", "/lib/libb.so.1", 0x303}})
	if !bytes.HasPrefix(raw, []byte("glibc-ld.so.cache1.1\x02\x00\x00\x00")) {
		t.Errorf("got header %q", raw[:24])
	}
	text := func(entry, field int) string {
		at := binary.LittleEndian.Uint32(raw[48+24*entry+4*field:])
		s, _, _ := bytes.Cut(raw[at:], []byte{0})
		return string(s)
	}
	if got, want := text(0, 1)+" "+text(0, 2)+" "+text(1, 1), "libb.so.1 /lib/libb.so.1 liba.so.1"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestFinishLibraries(t *testing.T) {
	host, err := os.ReadFile("/lib/x86_64-linux-gnu/libz.so.1")
	if err != nil {
		t.Skip("needs a library of the host: ", err)
	}
	tr := testTree(t)
	for name, content := range map[string]string{
		"usr/sbin/ldconfig": "", "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n", "etc/ld.so.conf.d/x.conf": "# comment\n/opt/lib\n",
		"opt/lib/libz.so.1.2": string(host), "opt/lib/libtext.so": "GROUP ( libz.so )", "usr/lib/other.so": string(host), "usr/lib/libz.so.1": string(host),
	} {
		if err := tr.put(name, 0o644, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"lib": "usr/lib", "opt/lib/libz.so.1": "libz.so.1.2", "opt/lib/libz.so": "libz.so.1"} {
		if err := tr.symlink(link, target, tr.own(0o777)); err != nil {
			t.Fatal(err)
		}
	}
	if err := finishLibraries(tr, nil); err != nil {
		t.Fatal(err)
	}
	got, err := tr.read("etc/ld.so.cache")
	want := encodeLibraries([]library{{"libz.so.1", "/opt/lib/libz.so.1", 0x303}, {"libz.so", "/opt/lib/libz.so", 0x303}})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
