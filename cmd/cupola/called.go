package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// calledAs is what a user types to call this program, whose first argument is
// given: cupola, or a path that leads to it, like bin/cupola.
func calledAs(arg0 string) string {
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

// called writes commands in a text so that they can be copied by whoever called
// this program by its path.
func (e *env) called(text string) string {
	return strings.NewReplacer("sudo cupola ", "sudo "+e.program+" ", "'cupola ", "'"+e.program+" ").Replace(text)
}
