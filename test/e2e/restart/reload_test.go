package restart

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// SIGHUP reads the configuration again: what may change does, the log names what needs a
// restart, and a file that is wrong changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cupola.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("service-backups: 7\n")
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--config", file)
	reload := func(text, says string) {
		t.Helper()
		write(text)
		before := len(d.Log.String())
		if err := d.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		e2e.Eventually(t, 30*time.Second, func() string {
			if said := d.Log.String()[before:]; !strings.Contains(said, says) {
				return "the log has no " + says + ":\n" + said
			}
			return ""
		})
	}
	created := func(name, password string) int {
		t.Helper()
		status, _ := postJSON(d, "/Users", e2e.Doc{"userName": name, "password": password, "emails": []e2e.Doc{{"value": name}}})
		return status
	}
	if got := created("first", "short"); got != http.StatusCreated {
		t.Fatalf("without a policy: got %d", got)
	}
	reload("password-policy: {min-length: 12}\nmax-service-bindings: 2\ndebug: true\n", `"configuration reloaded","changed":"debug max-service-bindings password-policy"`)
	if got := created("second", "short"); got != http.StatusBadRequest {
		t.Errorf("with a policy: got %d; want 400", got)
	}
	for text, says := range map[string]string{
		"password-policy: {min-length: x}\n":                    "configuration not reloaded: nothing changed",
		"password-polizy: {}\n":                                 "unknown key",
		"metrics: nowhere\n":                                    "invalid --metrics",
		"tls-cert: /nowhere/c.pem\ntls-key: /nowhere/k.pem\n":   "read --tls-cert",
		"password-policy: {min-length: 1}\nengine: no-engine\n": "invalid --engine",
	} {
		reload(text, says)
		if got := created("third", "short"); got != http.StatusBadRequest {
			t.Errorf("after %q: got %d; the policy of before answers 400", text, got)
		}
	}
	reload("domain: other.test\npassword-policy: {min-length: 12}\n", `"settings change with a restart","flags":"domain"`)
	reload("", `"configuration reloaded","changed":"password-policy"`)
	if got := created("fourth", "short"); got != http.StatusCreated {
		t.Errorf("without the policy again: got %d", got)
	}
	if got := asks(d.Addr, "/healthz", ""); got != "200 ok" {
		t.Errorf("health after it all: got %s", got)
	}
}

// TestReloadOfTargets changes by SIGHUP where alerts and backups go, for whom backups are encrypted, which services are offered, and how much
// room is kept.
func TestReloadOfTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, binary := filepath.Join(dir, "cupola.yml"), e2e.NeedBinary(t)
	recipient := backupKey(t, binary, filepath.Join(dir, "key"))
	first, second := t.TempDir(), t.TempDir()
	config := func(to, command, room, services string) {
		text := "backup-to: [" + to + "]\nbackup-recipient: [" + recipient + "]\nbackup-every: 1000h\nalert-command: " + command + "\ndisk-low-water: " + room + "\ndata-services: [" + services + "]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alerted := filepath.Join(dir, "alerted")
	config(first, "'true'", "1M", "files")
	d := e2e.StartDaemon(t, binary, "--config", file)
	saved := func(to string) {
		t.Helper()
		e2e.Eventually(t, time.Minute, func() string {
			if all, err := os.ReadDir(to); err != nil || len(all) == 0 {
				return "there is no backup at " + to
			}
			return ""
		})
	}
	saved(first)
	config(second, "cat >> "+alerted, "2M", "files, memcached")
	if err := d.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	saved(second)
	e2e.Eventually(t, time.Minute, func() string {
		if said := d.Log.String(); !strings.Contains(said, `"changed":"alert-command backup-to data-services disk-low-water"`) {
			return "the log does not say what changed"
		}
		return ""
	})
	if out, err := d.Run("backups", "run", "--data-dir", d.Dir); err != nil || strings.Contains(out, first) || !strings.Contains(out, second) {
		t.Errorf("backups run: got %s, %v; want the second address alone", out, err)
	}
	if said := d.Log.String(); strings.Contains(said, "settings change with a restart") {
		t.Errorf("the log names settings that need a restart:\n%s", said)
	}
	if out, err := d.Run("alerts", "test", "command"); err != nil {
		t.Errorf("alerts test: %v\n%s", err, out)
	}
	if said, err := os.ReadFile(alerted); err != nil || len(said) == 0 {
		t.Errorf("the new command got %q, %v", said, err)
	}
	if out, err := d.Run("disk", "list", "--json", "--data-dir", d.Dir); err != nil || !strings.Contains(out, `"low_water_bytes": 2097152`) {
		t.Errorf("disk: got %s, %v; want another low-water mark", out, err)
	}
	d.WaitFor("/v3/service_offerings?names=memcached")
	d.DataInstance("files", "shared")
	recipient = backupKey(t, binary, filepath.Join(dir, "other"))
	config(second, "'true'", "2M", "files, memcached")
	if err := d.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		out, err := d.Run("backups", "fetch", "latest", filepath.Join(dir, "fetched"), "--identity", filepath.Join(dir, "other"), "--data-dir", d.Dir)
		if err != nil {
			return out
		}
		return ""
	})
}

// backupKey makes a key that opens backups, and returns the public one.
func backupKey(t *testing.T, binary, file string) string {
	t.Helper()
	out, err := exec.Command(binary, "backups", "key", file).CombinedOutput()
	if err != nil {
		t.Fatalf("backups key: %v\n%s", err, out)
	}
	_, recipient, _ := strings.Cut(string(out), "--backup-recipient ")
	return strings.TrimSpace(recipient)
}
