package offsite

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
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
