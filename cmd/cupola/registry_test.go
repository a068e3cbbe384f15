package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/registry"
	"cupola/server/images"
)

// TestRegistryFlags reads them from the command line and from a file.
func TestRegistryFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cupola.yml")
	text := "mirrors: {docker.io: [a.example, b.example], quay.io: [c.example]}\nplain-http: [reg.lab:5000]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := registry.Config{Mirrors: map[string][]string{"docker.io": {"a.example", "b.example"}, "quay.io": {"c.example"}}, PlainHTTP: []string{"reg.lab:5000"}}
	for _, args := range [][]string{
		{"--config", file, "serve"},
		{"--config", file, "stack", "pull", "busybox"},
		{"serve", "--mirrors", "docker.io=a.example,b.example;quay.io=c.example", "--plain-http", "reg.lab:5000"},
	} {
		var c commandLine
		parser, err := newParser(&c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		flags := c.Serve.Config.Registries
		if args[2] == "stack" {
			flags = c.Stack.Pull.Registries
		}
		got, err := flags.Open()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", args, err, diff)
		}
	}
}

func TestRegistryCA(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "no certificate", "/does/not/exist": "no such file"} {
		if _, err := (images.Trust{RegistryCA: []string{file}}).Open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", file, err, want)
		}
	}
}
