package offsite

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// TestDue holds when the next backup is made: by the interval after one that was made,
// ever later after failures, and at once where a clock was ahead.
func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name  string
		state Status
		every time.Duration
		want  time.Time
	}{
		{"the first one", Status{}, time.Hour, time.Time{}.Add(time.Hour)},
		{"made", Status{Last: Made{At: ago(time.Hour)}}, 24 * time.Hour, now.Add(23 * time.Hour)},
		{"failed once", Status{Tried: ago(30 * time.Second), Failures: 1}, 24 * time.Hour, now.Add(30 * time.Second)},
		{"failed often", Status{Tried: now, Failures: 70}, 24 * time.Hour, now.Add(time.Hour)},
		{"failed, with a short interval", Status{Tried: now, Failures: 70}, 5 * time.Minute, now.Add(5 * time.Minute)},
		{"of a clock that was ahead", Status{Last: Made{At: now.Add(1000 * time.Hour)}}, time.Hour, now},
	} {
		if got := c.state.due(now, c.every); !got.Equal(c.want) {
			t.Errorf("%s: got %v; want %v", c.name, got, c.want)
		}
	}
}

// TestFaultsAreRemembered lets a storage be missing, and opens the state again: the
// failure is known, and it is known to the next daemon.
func TestFaultsAreRemembered(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret := filepath.Join(dir, "store.key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "unmounted")
	config := Config{Flags: Flags{To: []string{to}, Recipients: []string{key.Recipient().String()}}, Secret: secret, State: filepath.Join(dir, "offsite.json"), Log: slog.New(slog.DiscardHandler)}
	if _, err := New(config).RunNow(t.Context(), RunRequest{}, nil); err == nil || !strings.Contains(err.Error(), "mount the disk") {
		t.Fatal(err)
	}
	all, err := New(config).Statuses(t.Context())
	if err != nil || len(all) != 1 || all[0].Failures != 1 || all[0].Running || !strings.Contains(all[0].Error, "mount the disk") || all[0].Next.Before(all[0].Tried) {
		t.Errorf("got %+v (%v)", all, err)
	}
	if _, err := New(config).RunNow(t.Context(), RunRequest{To: "/elsewhere"}, nil); err == nil || !strings.Contains(err.Error(), "cupola backups status") {
		t.Errorf("an unknown address: %v", err)
	}
	if _, err := New(Config{}).Statuses(t.Context()); err == nil || !strings.Contains(err.Error(), "--backup-to") {
		t.Errorf("without any: %v", err)
	}
}

// TestFlags holds that what cannot be followed is refused, by the flag's name.
func TestFlags(t *testing.T) {
	const key = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
	for want, f := range map[string]Flags{
		"":                             {To: []string{"/mnt"}, Recipients: []string{key}},
		"invalid --backup-to":          {To: []string{"mnt"}, Recipients: []string{key}},
		"cupola backups key":           {To: []string{"/mnt"}},
		"invalid --backup-recipient":   {To: []string{"/mnt"}, Recipients: []string{"age1nonsense"}},
		"invalid --backup-every 1s":    {Every: time.Second},
		"invalid --backup-rate":        {Rate: -1},
		"invalid --backup-keep yearly": {Keep: map[string]int{"yearly": 1}},
	} {
		if err := f.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: got %v; want %q", f, err, want)
		}
	}
}

// TestOtherRecipientsAreDue wants a backup at once where the last one is for other recipients, but for one that fails, and for one of an
// earlier cupola, which did not say.
func TestOtherRecipientsAreDue(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	later := now.Add(24 * time.Hour)
	for name, c := range map[string]struct {
		last   Status
		atOnce bool
	}{
		"the same":             {Status{Last: Made{At: now, Recipients: []string{"age1b"}}}, false},
		"others":               {Status{Last: Made{At: now, Recipients: []string{"age1a"}}}, true},
		"one more":             {Status{Last: Made{At: now, Recipients: []string{"age1a", "age1b"}}}, true},
		"of an earlier cupola": {Status{Last: Made{At: now}}, false},
		"others, and fails":    {Status{Last: Made{At: now, Recipients: []string{"age1a"}}, Tried: now, Failures: 1}, false},
	} {
		c.last.To = "/mnt"
		state := filepath.Join(t.TempDir(), "offsite.json")
		text, err := json.Marshal([]Status{c.last})
		if err == nil {
			err = os.WriteFile(state, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		k := New(Config{Flags: Flags{To: []string{"/mnt"}, Recipients: []string{"age1b"}}, State: state, Log: slog.New(slog.DiscardHandler)})
		if got := k.due("/mnt", now); !got.After(now) != c.atOnce || got.After(later) {
			t.Errorf("%s: due %v after", name, got.Sub(now))
		}
	}
}

// TestMadeButNotPruned makes the storage fail after the backup is there: it is remembered as made, and the error says so.
func TestMadeButNotPruned(t *testing.T) {
	k := New(Config{Flags: Flags{To: []string{"/mnt"}}, State: filepath.Join(t.TempDir(), "offsite.json"), Log: slog.New(slog.DiscardHandler)})
	fault := errors.New("old ones were not removed: read-only file system")
	if err := k.ended("/mnt", Made{}, fault); !errors.Is(err, fault) || strings.Contains(err.Error(), "was made") || k.Failing()[0].IsMade() {
		t.Errorf("not made: got %v, %+v", err, k.Failing())
	}
	const want = "the backup one was made, but old ones were not removed: read-only file system"
	err := k.ended("/mnt", Made{Name: "one"}, fault)
	if all := k.Failing(); err == nil || err.Error() != want || len(all) != 1 || all[0].Error != want || !all[0].IsMade() || all[0].Last.Name != "one" {
		t.Errorf("made: got %v, %+v", err, all)
	}
	if err := k.ended("/mnt", Made{Name: "two"}, nil); err != nil || len(k.Failing()) != 0 {
		t.Errorf("all well: got %v, %+v", err, k.Failing())
	}
}
