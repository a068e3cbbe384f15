package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/offsite"
)

func TestRedacted(t *testing.T) {
	c := Config{AdminPassword: "hush", AlertCommand: "curl hush", Backups: offsite.Flags{To: []string{"sftp://hush@h"}, Every: time.Hour}, Domain: "example.com", DataDir: "/data", BackendTLS: true, ServiceBackups: 7}
	c.Mirrors, c.ACME.Email, c.TLSFiles.Key = map[string][]string{"hush": nil}, "hush@example.com", "/etc/key"
	got := c.Redacted()
	for flag, want := range map[string]any{"domain": "example.com", "data-dir": "/data", "backend-tls": true, "service-backups": 7, "backup-every": "1h0m0s", "tls-key": "/etc/key",
		"admin-password": Hidden, "alert-command": Hidden, "backup-to": Hidden, "mirrors": Hidden, "acme-email": Hidden} {
		if !reflect.DeepEqual(got[flag], want) {
			t.Errorf("--%s: got %v; want %v", flag, got[flag], want)
		}
	}
	if text := fmt.Sprint(got); strings.Contains(text, "hush") {
		t.Errorf("got %s", text)
	}
	if _, ok := got["kubernetes"]; ok {
		t.Error("a flag that is not set is listed")
	}
}
