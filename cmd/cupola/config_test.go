package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// printed is what 'cupola config print' says.
func printed(t *testing.T, args ...string) (code int, text, fault string) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = run(append([]string{"config", "print"}, args...), files[0], files[1])
	out, err := os.ReadFile(files[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(files[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(out), string(said)
}

// What is printed says where each value is from, has no secrets, and is a configuration file.
func TestConfigPrint(t *testing.T) {
	t.Setenv("CUPOLA_METRICS", "127.0.0.1:9102")
	file := filepath.Join(t.TempDir(), "cupola.yml")
	if err := os.WriteFile(file, []byte("# mine\ndomain: apps.test\npassword_policy: {min-length: 12}\ndata-services: [postgres, redis]\nadmin-password: very secret\nalert-command: curl -H secret\ninstance-tls: 'off'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text, fault := printed(t, "--config", file, "--http", "127.0.0.1:80", "--origin")
	if code != 0 {
		t.Fatalf("got %d: %s", code, fault)
	}
	for _, want := range []string{
		"domain: apps.test  # " + file + ":2\n", "password-policy: {min-length: 12}  # " + file + ":3\n", "data-services: [postgres, redis]  # " + file + ":4\n",
		"# admin-password: (set, not shown)  # " + file + ":5\n", "# alert-command: (set, not shown)  # " + file + ":6\n", "http: 127.0.0.1:80  # flag\n",
		"metrics: 127.0.0.1:9102  # environment CUPOLA_METRICS\n", "https: 127.0.0.1:8443  # default\n", "# bbs: (not set)  # default\n", "drain-wait: 0s  # default\n", "debug: false  # default\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("a secret is in\n%s", text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, again, fault := printed(t, "--config", file)
	if code != 0 {
		t.Fatalf("what was printed is no configuration file: %s", fault)
	}
	_, plain, _ := printed(t, "--config", file, "--http", "127.0.0.1:80")
	if again != plain || !strings.Contains(again, "\ndomain: apps.test\n") {
		t.Errorf("got\n%s\nwant\n%s", again, plain)
	}
	if code, _, fault := printed(t, "--http", "nowhere"); code != 2 || !strings.Contains(fault, "--http") {
		t.Errorf("an invalid flag: got %d, %s", code, fault)
	}
}
