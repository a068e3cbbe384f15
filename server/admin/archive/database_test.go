package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const plainDatabase = "SQLite format 3\x00 and its pages"

func copyOf(text string) func(context.Context, string) error {
	return func(_ context.Context, file string) error { return os.WriteFile(file, []byte(text), 0o600) }
}

func TestCopyDatabaseKeepsAFew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	day := 24 * time.Hour
	start := time.Date(2026, 1, 1, 4, 0, 0, 0, time.UTC)
	for n := range 10 {
		if _, err := CopyDatabase(t.Context(), dir, 100, start.Add(time.Duration(n)*day), copyOf(plainDatabase)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := DatabaseCopies(dir)
	if err != nil || len(all) != keptCopies || !all[0].Made.Equal(start.Add(9*day)) {
		t.Fatalf("got %v, %v; want the newest %d", all, err, keptCopies)
	}
	if info, err := os.Stat(all[0].File); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v; want 0600", info, err)
	}
	// After a long time without a daemon, and after a clock that jumped back.
	for _, at := range []time.Time{start.Add(100 * day), start.Add(-100 * day)} {
		if _, err := CopyDatabase(t.Context(), dir, 100, at, copyOf(plainDatabase)); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = DatabaseCopies(dir); err != nil || len(all) < keptAnyway || !all[0].Made.Equal(start.Add(-100*day)) {
		t.Errorf("got %v, %v; want %d at least, the one that was made last first", all, err, keptAnyway)
	}
	to := filepath.Join(t.TempDir(), "db")
	if err := UnpackDatabase(all[0].File, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != plainDatabase {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCopyDatabaseThatFailsLeavesTheOthers(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 4, 0, 0, 0, time.UTC)
	if _, err := CopyDatabase(t.Context(), dir, 100, now, copyOf(plainDatabase)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err := CopyDatabase(t.Context(), dir, 100, now.Add(time.Hour), func(_ context.Context, file string) error {
		return errors.Join(broken, os.WriteFile(file, []byte("half"), 0o600))
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err = CopyDatabase(t.Context(), dir, 1<<60, now.Add(time.Hour), copyOf(plainDatabase)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v; want ErrNoRoom", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v; want the one copy", entries, err)
	}
}

func TestUnpackDatabaseRefuses(t *testing.T) {
	dir := t.TempDir()
	good, err := CopyDatabase(t.Context(), dir, 100, time.Now(), copyOf(strings.Repeat(plainDatabase, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good.File)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)-6] ^= 1
	for name, content := range map[string]string{"empty": "", "short": "SQLite", "another file": strings.Repeat("x", 100), "cut off": string(whole[:len(whole)-5]), "flipped": string(flipped)} {
		from := filepath.Join(t.TempDir(), "from")
		if err := os.WriteFile(from, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := UnpackDatabase(from, filepath.Join(t.TempDir(), "to")); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
