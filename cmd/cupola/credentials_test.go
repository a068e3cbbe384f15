package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/cmd/cupola/command"
)

// The lines of credentials --director hold wherever the shell goes next, also with a relative --data-dir.
func TestDirectorCredentialsNameAnAbsoluteFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"db/admin-password": "secret\n", "director": "https://127.0.0.1:25555\n"} {
		file := filepath.Join("data", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := credentialsCmd{DaemonFlags: command.DaemonFlags{DataDir: "data"}, Director: true}
	if err := c.Run(&command.Env{Ctx: t.Context(), Out: &out}); err != nil {
		t.Fatal(err)
	}
	if want := "export BOSH_CA_CERT='" + filepath.Join(dir, "data", "ca.pem") + "'\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q; want a line %q", out.String(), want)
	}
}
