package backups

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/admin/offsite"
)

// TestStatesOfBackups tells a backup that failed from one that was made before something failed.
func TestStatesOfBackups(t *testing.T) {
	tried := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		status       offsite.Status
		want, unlike string
	}{
		{offsite.Status{}, "ok", "failed"},
		{offsite.Status{Tried: tried, Failures: 2, Error: "the disk is away"}, "failed at ", "made"},
		{offsite.Status{Tried: tried, Error: "the backup one was made, but old ones were not removed"}, "the backup one was made, but", "failed"},
	} {
		var out bytes.Buffer
		if err := writeStatuses(&command.Env{Out: &out}, []offsite.Status{c.status}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), c.unlike) {
			t.Errorf("%+v: got %s", c.status, out.String())
		}
	}
}
