package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completed asks a shell what it offers after words, with the script loaded.
func completed(t *testing.T, shell string, words ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip("there is no " + shell)
	}
	var script bytes.Buffer
	if err := writeCompletion(&script, shell); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(file, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := map[string][]string{
		"bash": {"-c", `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cupola; printf '%s\n' "${COMPREPLY[@]}"`, file},
		"fish": {"--no-config", "-c", `source $argv[1]; complete -C (string join ' ' -- $argv[2..-1])`, file},
		"zsh":  {"-f", "-n", file},
	}[shell]
	if shell != "zsh" {
		ask = append(ask, append([]string{"cupola"}, words...)...)
	}
	out, err := exec.Command(shell, ask...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return string(out)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "fish"} {
		t.Run(shell, func(t *testing.T) {
			for _, c := range []struct {
				words   []string
				want    string
				without string
			}{
				{[]string{"ver"}, "verify", "serve"},
				{[]string{"stack", ""}, "pull", "serve"},
				{[]string{"stack", "remove", "--"}, "--data-dir", "--fallback"},
				{[]string{"--debug", "stack", "pull", "--fall"}, "--fallback", "--data-dir"},
				{[]string{"backup", "--st"}, "--stacks", "--data-dir"},
			} {
				got := completed(t, shell, c.words...)
				if !strings.Contains(got, c.want) || strings.Contains(got, c.without) {
					t.Errorf("%q: got %q; want %s and no %s", c.words, got, c.want, c.without)
				}
			}
		})
	}
	t.Run("zsh", func(t *testing.T) { completed(t, "zsh") }) // its syntax
}

// TestTheManualIsComplete holds that each command and each flag is in it.
func TestTheManualIsComplete(t *testing.T) {
	var b bytes.Buffer
	if err := writeManual(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), `\-`, "-")
	all, err := commands()
	if err != nil || len(all) < 20 {
		t.Fatalf("got %d commands, %v", len(all), err)
	}
	for _, c := range all[1:] {
		if len(c.Commands) == 0 && !strings.Contains(text, `.SS "cupola `+strings.Join(c.Path(), " ")) {
			t.Errorf("%q is missing", c.Path())
		}
		for _, f := range c.Flags {
			if !f.Hidden && !strings.Contains(text, ".B --"+f.Name) {
				t.Errorf("--%s is missing", f.Name)
			}
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "'") {
			t.Errorf("%q is no request", line)
		}
	}
	if _, err := exec.LookPath("mandoc"); err != nil {
		return
	}
	lint := exec.Command("mandoc", "-T", "lint", "-W", "error")
	lint.Stdin = &b
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
