package deployment

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/cmd/cupola/command"
)

// TestVarsStore generates what has no value, once, and without a daemon.
func TestVarsStore(t *testing.T) {
	dir := t.TempDir()
	manifest, store := filepath.Join(dir, "m.yml"), filepath.Join(dir, "vars.yml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(store)
		info, statErr := os.Stat(store)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("got %v, %v, %v; want a file of its owner's", info, err, statErr)
		}
		return string(text)
	}
	interpolated := func(path string, vars ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		c := interpolateCmd{sourceFlags: sourceFlags{Manifest: manifest, VarsStore: store, variableFlags: variableFlags{Var: vars}}, Path: path, VarErrs: true}
		if err := c.Run(&command.Env{Ctx: t.Context(), Out: &out, Err: &said}); err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		return strings.TrimSpace(out.String())
	}
	write(store, "port: 8080\n")
	write(manifest, "name: x\nport: ((port))\npassword: ((p))\ngiven: ((given))\nca: ((leaf.ca))\nsigner: ((ca.certificate))\nvariables:\n- {name: p, type: password, options: {length: 12}}\n"+
		"- {name: given, type: password}\n- {name: ca, type: certificate, options: {is_ca: true, common_name: ((cn))}}\n- {name: leaf, type: certificate, options: {ca: ca, common_name: leaf}}\n")
	vars := []string{"given=mine", "cn=authority"}
	first := interpolated("/password", vars...)
	stored := read()
	if len(first) != 12 || !strings.Contains(stored, "p: "+first) || !strings.Contains(stored, "port: 8080\n") || strings.Contains(stored, "mine") {
		t.Errorf("got %q and\n%s\nwant a password of 12 characters in the store, and no value of -v", first, stored)
	}
	if got := interpolated("/given", vars...); got != "mine" {
		t.Errorf("got %q; want the value of -v", got)
	}
	if got := interpolated("/ca", vars...); got == "" || got != interpolated("/signer", vars...) {
		t.Errorf("got %q; want the certificate of the store's CA", got)
	}
	if got := interpolated("/port", vars...); got != "8080" {
		t.Errorf("got %q; want 8080", got)
	}
	if again := read(); again != stored {
		t.Errorf("the store has changed:\n%s\nwas\n%s", again, stored)
	}
}
