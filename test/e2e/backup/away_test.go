package backup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/repository/storagetest"
	"cupola/test/e2e"
)

// awayTime is for how long the server is away: an hour with CUPOLA_AWAY=1h. It is longer than until the alert.
func awayTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CUPOLA_AWAY")
	if text == "" {
		return 90 * time.Second
	}
	away, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return away
}

// TestATargetThatIsAway lets an SFTP server go away while apps are created and uploaded. The alert fires, and is resolved
// once the server is back; meanwhile the daemon keeps no more on its disk than one part; then one part reaches to now, and all is restored from it.
func TestATargetThatIsAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := storagetest.SFTP(t, dir)
	o := newOffsite(t, server.Address)
	d := e2e.StartDaemon(t, o.binary, o.flags...)
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "journal/*/snapshots/*.json", 1) })
	statusHas(t, d, 1, " ok\n") // the backup that it follows has ended
	server.Stop()
	all, scratch := workAway(d, awayTime(t))
	if out := listAlerts(d); !strings.Contains(out, "backup-behind") {
		t.Errorf("got\n%s\nwant the alert that the backup is behind", out)
	}
	database := treeSize(filepath.Join(d.Dir, "db"))
	if limit := database + int64(noises*noiseSize) + 4<<20; scratch > limit {
		t.Errorf("parts that were not sent had %d bytes on the disk; want at most %d", scratch, limit)
	}
	if wal, err := os.Stat(filepath.Join(d.Dir, "db/cupola.db-wal")); err != nil || wal.Size() > 64<<20 {
		t.Errorf("the write-ahead log: %+v, %v", wal, err)
	}
	parts, _ := filepath.Glob(filepath.Join(dir, "journal/*/snapshots/*.json"))
	server.Start()
	back := time.Now()
	statusHas(t, d, 1, " ok\n")
	t.Logf("%d apps were created; at most %d bytes of %d were on the disk; %v after it was back all was there", len(all), scratch, database, time.Since(back).Round(time.Second))
	e2e.Eventually(t, 2*time.Minute, func() string {
		if out := listAlerts(d); strings.Contains(out, "backup-behind") {
			return out
		}
		return ""
	})
	// One has all, and few follow it until the alert is resolved.
	if now, _ := filepath.Glob(filepath.Join(dir, "journal/*/snapshots/*.json")); len(now) <= len(parts) || len(now) > len(parts)+8 {
		t.Errorf("there were %d parts, and are %d", len(parts), len(now))
	}
	d.Kill()
	e := elsewhere(d, t)
	if out := command(t, e, "restore", "latest", "--from", server.Address, "--identity", o.key); !strings.Contains(out, "with what changed until") || strings.Contains(out, "left out") {
		t.Error(out)
	}
	t.Cleanup(e.Destroy)
	e.Start()
	if lost := missing(e, all); len(lost) > 0 {
		t.Errorf("%d of %d apps are lost: %v", len(lost), len(all), lost)
	}
	if blobs, _ := filepath.Glob(filepath.Join(e.Dir, "blobs/*/*")); sizes(blobs) < noises*noiseSize {
		t.Errorf("of %d bytes that were uploaded %d are restored", noises*noiseSize, sizes(blobs))
	}
}

// What is uploaded while the server is away.
const (
	noises    = 6
	noiseSize = 2 << 20 // bytes
)

// workAway works for a time, and returns the apps that were created and how many bytes of backups the data directory had at most.
func workAway(d *e2e.Daemon, away time.Duration) (all []created, scratch int64) {
	d.T.Helper()
	look := make(chan struct{})
	looked := make(chan int64)
	go func() {
		most := int64(0)
		for {
			select {
			case <-look:
				looked <- most
				return
			case <-time.After(20 * time.Millisecond):
				found, _ := filepath.Glob(filepath.Join(d.Dir, "backup-*"))
				for _, dir := range found {
					most = max(most, treeSize(dir))
				}
			}
		}
	}()
	space := d.First("/v3/spaces?names=dev")
	uploaded := 0
	for end, began := time.Now().Add(away), time.Now(); time.Now().Before(end); time.Sleep(time.Second) {
		if uploaded < noises && time.Since(began) > away/noises*time.Duration(uploaded) {
			keepNoiseAs(d, "noise-"+time.Now().Format("150405"), noiseSize)
			uploaded++
		}
		name := "away-" + time.Now().Format("150405.000")
		d.API("POST", "/v3/apps", e2e.Doc{"name": name, "relationships": e2e.Doc{"space": e2e.ToOne(space)}}, nil)
		all = append(all, created{name, time.Now()})
	}
	close(look)
	return all, <-looked
}

// listAlerts is what fires.
func listAlerts(d *e2e.Daemon) string {
	d.T.Helper()
	out, err := d.Run("alerts", "list")
	if err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	return out
}

// treeSize is how many bytes the files below a directory have. Files may go meanwhile.
func treeSize(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
