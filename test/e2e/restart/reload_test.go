package restart

import (
	"net/http"
	"os"
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
