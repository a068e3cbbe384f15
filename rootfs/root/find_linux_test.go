package root

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"cupola/rootfs/stack"
)

// A view follows links from the root into what is bound there, and out of it, and never leaves both.
func TestView(t *testing.T) {
	t.Parallel()
	root, usr := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{root + "/etc/tool": "etc", usr + "/bin/sh": "sh", root + "/usr/bin/sh": "hidden", root + "/bound": "", root + "/data/file": "file"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{root + "/bin": "usr/bin", usr + "/bin/tool": "/etc/alternatives/tool", root + "/etc/alternatives": ".", usr + "/bin/out": "../../../../etc/tool",
		root + "/loop": "loop", root + "/gone": "/none"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	v := view{dir, []stack.Bind{{Source: usr, Destination: "/usr"}, {Source: "", Destination: "/data"}, {Source: usr + "/bin/sh", Destination: "/bound"}}}
	for name, want := range map[string]string{"/bin/sh": "sh", "bin/../usr/bin/sh": "sh", "/usr/bin/tool": "etc", "/bin/out": "etc", "/bound": "sh", "/data/file": "file",
		"/loop": "", "/gone": "", "/none": "", "/usr/none": "", "/bin/sh/x": ""} {
		f, err := v.find(name)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got, err := io.ReadAll(f)
		f.Close()
		if string(got) != want || err != nil || want == "" {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	f, err := v.find("/bin")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names, err := f.Readdirnames(-1); len(names) != 3 {
		t.Errorf("/bin has %v, %v; want what is bound", names, err)
	}
}
