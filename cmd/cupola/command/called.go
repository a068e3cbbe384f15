package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CalledAs is what a user types to call this program, whose first argument is
// given: cupola, or a path that leads to it, like bin/cupola.
func CalledAs(arg0 string) string {
	const name = "cupola"
	if filepath.Base(arg0) != name || !strings.Contains(arg0, "/") {
		return name
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return arg0
	}
	a, aerr := os.Stat(found)
	b, berr := os.Stat(arg0)
	if aerr == nil && berr == nil && os.SameFile(a, b) {
		return name
	}
	return arg0
}

// Called writes the commands in a text with the path by which this program was
// called, so that they can be copied.
func (e *Env) Called(text string) string {
	return strings.NewReplacer("sudo cupola ", "sudo "+e.Program+" ", "'cupola ", "'"+e.Program+" ").Replace(text)
}
