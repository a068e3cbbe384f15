package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/acme"
	"cupola/server/alerts"
)

func TestCertificates(t *testing.T) {
	m := files(t, nil)
	m.DataDir = t.TempDir()
	check := func(level Level, want string) {
		t.Helper()
		if r := m.certificates(t.Context()); r.Level != level || !strings.Contains(r.Detail, want) {
			t.Errorf("got %v; want %v %s", r, level, want)
		}
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(m.DataDir, acme.StatusFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check(OK, "no certificate is missing")
	put("[]")
	check(OK, "no certificate is missing")
	m.now = time.Date(2026, 1, 2, 0, 1, 0, 0, time.UTC)
	put(`[{"name": "a.example", "error": "no DNS record", "at": "2026-01-02T00:00:00Z"}]`)
	check(Warn, "no certificate by ACME for a.example: no DNS record (1m0s ago)")
	put(`[{"name": "a.example", "error": "rate limited", "at": "2026-01-02T00:00:00Z", "until": "2026-02-01T00:00:00Z"}, {"name": "b.example", "error": "x", "at": "2026-01-02T00:00:00Z"}]`)
	check(Warn, "rate limited (1m0s ago); and for 1 more names; the one of before is valid until 2026-02-01T00:00:00Z")
	put("{")
	check(Fail, "unexpected end of JSON")
}

func TestTargetsOfAlerts(t *testing.T) {
	now := time.Now()
	if r := judgeAlerts(nil, now); r.Level != OK {
		t.Errorf("got %+v", r)
	}
	r := judgeAlerts([]alerts.FailingTarget{{Name: "chat", Since: now.Add(-time.Hour), Error: "gone", Waiting: 3}, {Name: "mail"}}, now)
	if r.Level != Warn || !strings.Contains(r.Detail, "the target chat takes no alerts (for 1h0m0s): gone; at least 3 wait; and 1 more") || r.Fix != "sudo cupola alerts test chat" {
		t.Errorf("got %+v", r)
	}
}
