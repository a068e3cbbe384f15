package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCalledAs(t *testing.T) {
	dir := t.TempDir()
	program, link := filepath.Join(dir, "cupola"), filepath.Join(dir, "path", "cupola")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(link))
	check := func(arg0, want string) {
		t.Helper()
		if got := CalledAs(arg0); got != want {
			t.Errorf("%s: got %s; want %s", arg0, got, want)
		}
	}
	check("cupola", "cupola")
	check("/tmp/cupola.test", "cupola")
	check(program, program)
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, link); err != nil {
		t.Fatal(err)
	}
	check(program, "cupola") // it is in the PATH
	got := (&Env{Program: "bin/cupola"}).Called("cupola: run 'cupola serve' or sudo cupola doctor; see docs/cupola.md")
	if want := "cupola: run 'bin/cupola serve' or sudo bin/cupola doctor; see docs/cupola.md"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}
