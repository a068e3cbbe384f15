package store

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLogIsBegunAnew writes without a pause, several times of what the log may
// hold: it must not grow with what is written, and none of that is copied into
// the database by the writes themselves.
func TestLogIsBegunAnew(t *testing.T) {
	s := openTest(t)
	var auto int
	if err := s.writer.QueryRow("PRAGMA wal_autocheckpoint").Scan(&auto); err != nil || auto != 0 {
		t.Errorf("the writer makes a checkpoint after %d pages, %v; want none", auto, err)
	}
	file := filepath.Join(s.dir, DatabaseFile)
	long := strings.Repeat("x", 100<<10)
	var writing sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		writing.Go(func() {
			for range 400 { // 10,000 pages
				if err := s.Write(t.Context(), func(tx *Tx) error { return Settings.Set(tx, name, long) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	info, err := os.Stat(file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	// A checkpoint may be under way while as much is written as it copies.
	if pages := info.Size() / 4120; pages > 3*maxLogPages {
		t.Errorf("the log has %d pages; want at most %d", pages, 3*maxLogPages)
	}
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		log, err := s.checkpoints.checkpoint(t.Context(), "NOOP")
		if err != nil {
			t.Fatal(err)
		}
		if log.pages-log.copied < checkpointPages+checkpointCommits*30 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pages are in the database", log.copied, log.pages)
		}
	}
}
