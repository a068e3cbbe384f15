package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"cupola/test/goprogram"
)

// programs are the files that Program has made, by directory and package.
var programs = struct {
	sync.Mutex
	files map[[2]string]string
}{files: map[[2]string]string{}}

// common is the directory of what the tests of a package share; Main removes it.
var common struct {
	sync.Mutex
	dir string
}

func commonDir(t testing.TB) string {
	t.Helper()
	common.Lock()
	defer common.Unlock()
	if common.dir == "" {
		dir, err := os.MkdirTemp("", "cupola-shared-")
		if err != nil {
			t.Fatal(err)
		}
		common.dir = dir
	}
	return common.dir
}

// Program is the file of a static Go program, which is built once for all tests
// of a package. dir is a directory of the program's module.
func Program(t testing.TB, dir, pkg string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if file := programs.files[[2]string{dir, pkg}]; file != "" {
		return file
	}
	file := filepath.Join(commonDir(t), strconv.Itoa(len(programs.files)))
	if err := goprogram.Build(dir, pkg, file); err != nil {
		t.Fatalf("in %s: %v", dir, err)
	}
	programs.files[[2]string{dir, pkg}] = file
	return file
}

// CopyProgram copies a program to a directory, under a name.
func CopyProgram(t testing.TB, program, dir, name string) {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
		t.Fatal(err)
	}
}
