package offsite

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"cupola/server/admin/steps"
)

// TestFlagsChange changes the address while a backup is made, and while none is: it is not before that one has ended, and the
// new address is used without a restart.
func TestFlagsChange(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret := filepath.Join(dir, "store.key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := func(name string) Flags {
		return Flags{To: []string{filepath.Join(dir, name)}, Recipients: []string{key.Recipient().String()}}
	}
	l := NewLive(Config{Flags: to("a"), Secret: secret, State: filepath.Join(dir, "offsite.json"), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	first := l.Keeper()
	<-first.turn // as who makes a backup
	go func() { done <- l.Run(ctx) }()
	l.Set(to("b"))
	l.Set(to("c"))
	time.Sleep(10 * time.Millisecond)
	if l.Keeper() != first {
		t.Error("the flags changed while a backup is made")
	}
	first.turn <- struct{}{}
	for _, name := range []string{"c", "d"} {
		l.Set(to(name))
		for l.Keeper().To[0] != filepath.Join(dir, name) || l.Keeper().Failing() == nil { // it tries at once, and no disk is mounted there
			time.Sleep(time.Millisecond)
		}
		all, err := l.Keeper().Statuses(t.Context())
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Error, "mount the disk") {
			t.Errorf("%s: got %+v, %v", name, all, err)
		}
	}
	l.Set(Flags{})
	for len(l.Keeper().To) > 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}

// TestNoBackupWithEarlierFlags asks for a backup, which has its turn once the flags have changed: neither the address nor the recipients of
// before get one, and what is remembered is of the new address.
func TestNoBackupWithEarlierFlags(t *testing.T) {
	state := filepath.Join(t.TempDir(), "offsite.json")
	l := NewLive(Config{Flags: Flags{To: []string{"/before"}}, State: state, Log: slog.New(slog.DiscardHandler)})
	before := l.Keeper()
	<-before.turn
	l.replace(before, Flags{To: []string{"/after"}})
	if _, err := before.RunNow(t.Context(), RunRequest{}, func(steps.Step) {}); !errors.Is(err, errReplaced) {
		t.Errorf("got %v; want that the flags changed", err)
	}
	if text, err := os.ReadFile(state); err == nil {
		t.Errorf("got the state %s", text)
	}
	select {
	case <-l.Keeper().turn:
	default:
		t.Error("the turn is lost")
	}
}
