package restart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/store/cf"
	"cupola/test/e2e"
)

// hook is a webhook that notes the events that it gets. While it holds, it answers
// nothing.
type hook struct {
	mu     sync.Mutex
	hold   bool
	held   int
	events []cf.AlertEvent
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Events []cf.AlertEvent }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/secret-path" {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	if hold := h.hold; hold {
		h.held++
		h.mu.Unlock()
		<-r.Context().Done()
		return
	}
	defer h.mu.Unlock()
	h.events = append(h.events, in.Events...)
}

// ids are the IDs of the events of a kind about a rule and a subject.
func (h *hook) ids(kind, rule, subject string) (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == kind && e.Rule == rule && e.Name == subject {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func listenAt(t *testing.T, addr string, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

const (
	smtpPassword = "mail-pass-4711"
	crashing     = "app-crashing"
)

// must runs cupola and returns what it prints.
func must(d *e2e.Daemon, args ...string) string {
	d.T.Helper()
	out, err := d.Run(args...)
	if err != nil {
		d.T.Fatalf("cupola %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestAlerts lets an app crash. A webhook, a mail server and one target that is gone are
// told; the daemon is killed after an alert fired and before a target took it. Each
// target gets each event at least once, and those that had taken it get it once.
func TestAlerts(t *testing.T) {
	t.Parallel()
	now, gone, mails := &hook{}, &hook{}, newSMTPServer(t, "ops", smtpPassword)
	at := listenAt(t, "127.0.0.1:0", now)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	goneAt := closed.Addr().String()
	closed.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--alert-command", "cat >>"+ran)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(mails.ca), 0o600); err != nil {
		t.Fatal(err)
	}
	must(d, "alerts", "add-target", "now", "--webhook", "http://"+at+"/secret-path")
	must(d, "alerts", "add-target", "gone", "--webhook", "http://"+goneAt+"/secret-path")
	mail := exec.Command(d.Binary, "alerts", "add-target", "mail", "--mail", "owner@example.com", "--server", mails.addr, "--smtp-user", "ops", "--ca", ca)
	mail.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword, "CUPOLA_SMTP_PASSWORD="+smtpPassword)
	if out, err := mail.CombinedOutput(); err != nil {
		t.Fatalf("add the mail server: %v\n%s", err, out)
	}
	for _, name := range []string{"now", "mail", "command"} {
		must(d, "alerts", "test", name)
	}
	if out, err := d.Run("alerts", "test", "gone"); err == nil || !strings.Contains(out, "connection refused") || strings.Contains(out, "secret-path") {
		t.Errorf("a test of a target that is gone: %v\n%s", err, out)
	}
	must(d, "alerts", "set-rule", crashing, "--for", "1s")

	now.mu.Lock()
	now.hold = true
	now.mu.Unlock()
	name := pushCrashing(d)
	e2e.Eventually(t, time.Minute, func() string {
		now.mu.Lock()
		defer now.mu.Unlock()
		if now.held == 0 || len(mails.with(crashing)) == 0 || !delivered(d, "mail") {
			return fmt.Sprintf("the webhook was asked %d times, mails: %q", now.held, mails.with(crashing))
		}
		return ""
	})
	d.Kill()
	now.mu.Lock()
	now.hold = false
	now.mu.Unlock()
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		if len(now.ids("firing", crashing, name)) == 0 {
			return "the webhook was not told again after the kill"
		}
		return ""
	})
	e2e.Eventually(t, time.Minute, func() string {
		out := must(d, "alerts")
		for _, part := range []string{"firing", crashing, name, "boom-4711", "The target gone takes no messages since", "waiting"} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
				return fmt.Sprintf("cupola alerts does not say %q:\n%s", part, out)
			}
		}
		return ""
	})

	if out, err := d.Run("status"); err == nil || !strings.Contains(out, "1 firing") || !strings.Contains(out, name) || !strings.Contains(out, "The target gone takes no alerts") {
		t.Errorf("cupola status: %v; want exit code 1\n%s", err, out)
	}

	listenAt(t, goneAt, gone)
	d.API("POST", "/v3/apps/"+d.App("crasher")+"/actions/stop", nil, nil)
	e2e.Eventually(t, 2*time.Minute, func() string {
		for which, h := range map[string]*hook{"now": now, "gone": gone} {
			if len(h.ids("firing", crashing, name)) == 0 || len(h.ids("resolved", crashing, name)) == 0 {
				return fmt.Sprintf("%s got no firing or no resolved event: %+v", which, h.events)
			}
		}
		if len(mails.with("Resolved: "+crashing)) == 0 {
			return "no mail says that it is over"
		}
		return ""
	})
	if n := len(mails.with("Firing (critical): " + crashing)); n != 1 {
		t.Errorf("got %d mails that it fires; want 1", n)
	}
	if ids := gone.ids("firing", crashing, name); len(ids) != 1 {
		t.Errorf("the target that was gone got %q; want the event once", ids)
	}
	if text, err := os.ReadFile(ran); err != nil || !strings.Contains(string(text), `"event":"firing"`) || !strings.Contains(string(text), `"event":"resolved"`) {
		t.Errorf("the command got %s, %v", text, err)
	}
	noSecrets(t, d)
}

// delivered reports whether nothing waits for a target.
func delivered(d *e2e.Daemon, target string) bool {
	d.T.Helper()
	var list struct {
		Resources []struct {
			Name    string
			Waiting int
		}
	}
	d.API("GET", "/v1/alerts/targets", nil, &list)
	for _, t := range list.Resources {
		if t.Name == target {
			return t.Waiting == 0
		}
	}
	return false
}

// pushCrashing pushes an app whose instances end at once, and returns its name in
// alerts.
func pushCrashing(d *e2e.Daemon) string {
	d.T.Helper()
	dir := d.T.TempDir()
	for file, text := range map[string]string{"manifest.yml": "applications:\n- name: crasher\n  stack: host\n  buildpacks: [binary_buildpack]\n  command: echo boom-4711; exit 3\n", "file": "x"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			d.T.Fatal(err)
		}
	}
	if out, err := d.Run("push", dir); err == nil {
		d.T.Fatalf("the push of an app that crashes succeeded:\n%s", out)
	}
	return "cupola/dev/crasher (web)"
}

// noSecrets holds that neither the database nor the log nor an answer shows addresses
// of webhooks and passwords.
func noSecrets(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.Dir, "db", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	said := []byte(d.Log.String() + must(d, "alerts", "targets", "--json") + must(d, "alerts", "targets"))
	for _, name := range append(files, filepath.Join(d.Dir, "alerts.json")) {
		if text, err := os.ReadFile(name); err == nil {
			said = append(said, text...)
		}
	}
	for _, secret := range []string{"secret-path", smtpPassword} {
		if bytes.Contains(said, []byte(secret)) {
			t.Errorf("%q is in the database, the log or an answer", secret)
		}
	}
}
