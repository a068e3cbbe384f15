package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkParsePackages reads an index of Debian's size, some 63,000 packages.
func BenchmarkParsePackages(b *testing.B) {
	var text strings.Builder
	for i := range 63_000 {
		fmt.Fprintf(&text, "Package: package-%d\nSource: source\nVersion: 1.%d-1\nInstalled-Size: 100\nMaintainer: Some Body <some@body.example>\n"+
			"Architecture: amd64\nDepends: libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11)\nDescription: a package\nHomepage: https://example.org\n"+
			"Description-md5: 0123456789abcdef0123456789abcdef\nTag: devel::library, implemented-in::c++,\n role::devel-lib\nSection: libdevel\nPriority: optional\n"+
			"Filename: pool/main/p/package/package_1.%d-1_amd64.deb\nSize: 1000\nMD5sum: 0123456789abcdef0123456789abcdef\nSHA256: %064x\n\n", i, i, i, i)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parsePackages(text.String(), "amd64", "test"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuildFromLock rebuilds debian12 core from its lock with every
// package in the cache; CUPOLA_TEST_DEBIAN=1 switches it on.
func BenchmarkBuildFromLock(b *testing.B) {
	if os.Getenv("CUPOLA_TEST_DEBIAN") != "1" {
		b.Skip("needs CUPOLA_TEST_DEBIAN=1 and a Debian mirror")
	}
	dir := b.TempDir()
	o := Options{Suite: "debian12", CacheDir: filepath.Join(dir, "cache"), Dest: filepath.Join(dir, "stack")}
	first, err := Build(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	o.Lock = first.Lock
	b.SetBytes(first.InstalledBytes)
	for b.Loop() {
		b.StopTimer()
		if err := os.RemoveAll(o.Dest); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := Build(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}
