package offsite

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"cupola/server/admin/repository"
	"cupola/server/admin/repository/storage"
)

// TestABackupOfAnEarlierCupola has another one made before changes follow: it does not say which files
// are in it, and all of them would be sent once more.
func TestABackupOfAnEarlierCupola(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	secret := filepath.Join(t.TempDir(), "store.key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := repository.OpenFor(t.Context(), s, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := New(Config{Flags: Flags{To: []string{to}, ChangesEvery: time.Second}, Secret: secret, State: filepath.Join(t.TempDir(), "offsite.json"), Log: slog.New(slog.DiscardHandler)})
	k.states[to].Last.At = now
	f := k.followers[to]
	for _, files := range [][]string{nil, {"file"}} {
		_, err := r.Save(t.Context(), repository.SaveOptions{Recipients: []age.Recipient{key.Recipient()}, Commit: func(s *repository.Snapshot) error {
			s.Files = files
			return nil
		}}, func(w io.Writer) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := f.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if followed, due := f.base != "", !k.due(to, now).After(now); followed != (files != nil) || due == followed {
			t.Errorf("with the files %v: followed %v, another one is due %v", files, followed, due)
		}
	}
	k.states[to].Failures, k.states[to].Tried = 1, now
	if f.unlisted = true; !k.due(to, now).After(now) {
		t.Error("a backup that failed is tried again at once")
	}
}

// TestNothingIsGatheredForAnAddressThatIsAway does not copy the whole database again and again.
func TestNothingIsGatheredForAnAddressThatIsAway(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "store.key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &follower{Keeper: New(Config{Secret: secret, Log: slog.New(slog.DiscardHandler)}), to: filepath.Join(t.TempDir(), "unmounted"), base: "20261127T030000Z"}
	if err := f.tick(t.Context()); err == nil || !strings.Contains(err.Error(), "mount the disk") { // a Maker would gather
		t.Errorf("got %v", err)
	}
	if r := f.reaches(); r.Error == "" || r.Since.IsZero() {
		t.Errorf("got %+v", r)
	}
}
