package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/runtime/contract"
)

func runScript(t *testing.T, text string) (code int, out string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(programsDir, "lifecycle"), contract.CommandScript, "{}", "/bin/bash", "-c", text)
	got, err := cmd.CombinedOutput()
	return exitCode(t, err), string(got)
}

// TestScriptWaitsForWhatItLeaves checks that background processes of a script can write their last lines, within a time.
func TestScriptWaitsForWhatItLeaves(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	code, out := runScript(t, `exec > >(sleep 0.5; tee `+log+`) 2>&1; echo last line; exit 3`)
	if text, err := os.ReadFile(log); code != 3 || err != nil || string(text) != "last line\n" || out != "last line\n" {
		t.Errorf("got %d %q, %q, %v", code, out, text, err)
	}
	began := time.Now()
	cmd := exec.Command(filepath.Join(programsDir, "lifecycle"), contract.CommandScript, "{}", "/bin/sh", "-c", `sleep 1000 > /dev/null 2>&1 & echo $!`)
	text, err := cmd.Output()
	if took := time.Since(began); err != nil || took < 4*time.Second {
		t.Errorf("got %v after %s; want the script to end well when a while has passed", err, took)
	}
	_ = exec.Command("kill", strings.TrimSpace(string(text))).Run()
	if code, out := runScript(t, "kill $$"); code != 128+15 {
		t.Errorf("got %d %q; want the code of a signal", code, out)
	}
}

func TestScriptThatIsMissing(t *testing.T) {
	options, err := json.Marshal(contract.ScriptOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(programsDir, "lifecycle"), contract.CommandScript, string(options), "/no/such/script").CombinedOutput()
	if code := exitCode(t, err); code != 127 || !strings.Contains(string(out), "no such file") {
		t.Errorf("got %d %q", code, out)
	}
}
