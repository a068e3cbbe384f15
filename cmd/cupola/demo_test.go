package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemoOnceLeavesNothing(t *testing.T) {
	binary := needBinary(t)
	out, err := exec.Command(binary, "demo", "--once", "--http", "127.0.0.1:0").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "200 OK") {
		t.Fatalf("got %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cupola-demo-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if out, err := exec.Command(binary, "doctor", "--leaks", "--data-dir", filepath.Join(t.TempDir(), "none")).CombinedOutput(); err != nil {
		t.Errorf("doctor --leaks: %v\n%s", err, out)
	}
}
