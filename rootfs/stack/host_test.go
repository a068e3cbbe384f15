package stack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/system"
	"cupola/rootfs/system/systemtest"
	"cupola/rootfs/tree"
	"cupola/runtime/users"
)

func TestViewHost(t *testing.T) {
	t.Parallel()
	private := []string{"home/user/secret", "var/lib/data", "etc/shadow", "etc/ssl/private/key", "root/.ssh/id"}
	cases := []struct {
		name  string
		files []string
		binds []string // destinations
		links []string
	}{
		{
			"merged", []string{"usr/bin/bash", "usr/local/etc/app.conf", "bin -> usr/bin", "lib64 -> usr/lib64", "etc/alternatives/", "etc/ld.so.cache",
				"etc/ssl/certs/ca-certificates.crt", "etc/java-17-openjdk/security/", "etc/java-21-openjdk/"},
			[]string{"/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/ssl/certs", "/usr/local/etc"},
			[]string{"bin -> usr/bin", "lib64 -> usr/lib64"},
		},
		{
			"not merged, without certificates", []string{"usr/bin/env", "bin/bash", "lib/libc.so", "sbin/init", "lib64/ld.so"},
			[]string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}, nil,
		},
		{
			"certificates elsewhere", []string{"usr/bin/env", "bin -> usr/bin", "etc/pki/tls/certs/ca.crt", "etc/ssl/certs -> ../pki/tls/certs"},
			[]string{"/usr", "/etc/pki/tls/certs"}, []string{"bin -> usr/bin"},
		},
		{
			"fedora", []string{"usr/bin/env", "bin -> usr/bin", "etc/pki/tls/certs/ca-bundle.crt", "etc/pki/tls/private/key", "etc/pki/ca-trust/extracted/pem/a", "etc/pki/java/cacerts", "etc/crypto-policies/config", "etc/java/java-17-openjdk/x",
				"etc/ssl/certs -> ../pki/tls/certs"},
			[]string{"/usr", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/pki/java", "/etc/crypto-policies", "/etc/java"}, []string{"bin -> usr/bin"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := viewHost(systemtest.Machine(t, append(c.files, private...)...), "/empty")
			var binds []string
			for _, b := range v.binds {
				if !b.ReadOnly || strings.HasSuffix(b.Destination, "local/etc") && b.Source != "/empty" {
					t.Errorf("got bind %+v", b)
				}
				binds = append(binds, b.Destination)
			}
			if d := cmp.Diff(c.binds, binds); d != "" {
				t.Error(d)
			}
			for _, l := range c.links {
				from, to, _ := strings.Cut(l, " -> ")
				if !slices.ContainsFunc(v.nodes, func(n tree.Node) bool { return n.Path == from && n.Content == to }) {
					t.Errorf("link %s is missing", l)
				}
			}
			hasOwn := slices.ContainsFunc(v.nodes, func(n tree.Node) bool { return n.Path == system.CABundle })
			if hasOwn == slices.Contains(binds, "/etc/ssl/certs") {
				t.Error("want the machine's certificates or Mozilla's, not both or none")
			}
			if err := tree.Write(filepath.Join(t.TempDir(), "fs"), v.nodes, users.Range{}); err != nil {
				t.Errorf("got %v; want a tree with every mount point", err)
			}
		})
	}
}

func TestMinifsTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "fs")
	ids := users.Range{Base: 1_200_000, Size: 65536}
	nodes := minifsTree([]string{"sh", "ls", "bash", "env"})
	if err := tree.Write(dir, nodes, users.Range{}); err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Glob(filepath.Join(dir, "bin", "*"))
	for i := range bin {
		bin[i] = filepath.Base(bin[i])
	}
	if d := cmp.Diff([]string{"env", "ls", "sh"}, bin); d != "" || err != nil {
		t.Errorf("tools, never bash: %s %v", d, err)
	}
	if got := string(read(t, filepath.Join(dir, system.CABundle))); strings.Count(got, "BEGIN CERTIFICATE") < 100 {
		t.Errorf("got %d certificates; want Mozilla's", strings.Count(got, "BEGIN CERTIFICATE"))
	}
	if !strings.Contains(string(read(t, filepath.Join(dir, "etc/passwd"))), "vcap:x:2000:2000:vcap:/home/vcap:/bin/sh\n") {
		t.Error("vcap is no user")
	}
	if tree.Fingerprint(nodes, users.Range{}) == tree.Fingerprint(nodes, ids) || tree.Fingerprint(nodes, ids) == tree.Fingerprint(minifsTree(nil), ids) {
		t.Error("different trees have the same fingerprint")
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBundleOf finds the machine's CA certificates where distributions keep them.
func TestBundleOf(t *testing.T) {
	t.Parallel()
	const own = "# the operator's\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	for name, c := range map[string]struct {
		file, text string
		mode       os.FileMode
		own        bool
	}{
		"fedora":       {"etc/pki/tls/certs/ca-bundle.crt", own, 0o644, true},
		"suse":         {"var/lib/ca-certificates/ca-bundle.pem", own, 0o644, true},
		"arch":         {system.CABundle, own, 0o644, true},
		"nothing":      {"etc/other", own, 0o644, false},
		"not for all":  {"etc/pki/tls/certs/ca-bundle.crt", own, 0o600, false},
		"no PEM":       {"etc/pki/tls/certs/ca-bundle.crt", "TRUSTED", 0o644, false},
		"far too long": {"etc/pki/tls/certs/ca-bundle.crt", own + strings.Repeat("\n", maxBundle), 0o644, false},
	} {
		root := t.TempDir()
		file := filepath.Join(root, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if got := bundleOf(root); (got == own) != c.own || strings.Count(got, "BEGIN CERTIFICATE") < 1 {
			t.Errorf("%s: got %d bytes; want the machine's own: %t", name, len(got), c.own)
		}
	}
}
