package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cupola/server/admin/archive"
	"cupola/server/bulkhead"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// disk checks the free space for the data directory.
func (m *machine) disk(context.Context) Result {
	var st unix.Statfs_t
	if err := unix.Statfs(m.base(), &st); err != nil {
		return failed(fmt.Errorf("get the free space of %s: %w", m.base(), err), m.elsewhere())
	}
	if err := m.tryWrite(); err != nil {
		return failed(err, m.elsewhere())
	}
	return m.judgeDisk(st.Bavail*uint64(st.Bsize), st.Files, st.Ffree)
}

// tryWrite syncs a small file to the data directory's disk, as root: nothing else
// shows that a file system is full, or read-only after an error.
func (m *machine) tryWrite() error {
	if !m.superuser {
		return nil
	}
	err := m.try(func(dir string) error {
		f, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			return err
		}
		_, err = f.Write(make([]byte, 4096))
		return errors.Join(err, f.Sync(), f.Close())
	})
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", m.DataDir, err)
	}
	return nil
}

// backups checks that the daemon's automatic backup of its database is recent.
// It is made daily.
func (m *machine) backups(context.Context) Result {
	db := filepath.Join(m.DataDir, "db", "cupola.db")
	made, err := os.Stat(db)
	if errors.Is(err, fs.ErrNotExist) {
		return fine("no database yet")
	}
	if errors.Is(err, fs.ErrPermission) {
		return fine("not checked: requires root")
	}
	if err != nil {
		return failed(err, m.elsewhere())
	}
	copies, err := archive.DatabaseCopies(filepath.Join(m.DataDir, "db", "backups"))
	if err != nil {
		return failed(err, "ls -l "+filepath.Join(m.DataDir, "db", "backups"))
	}
	return m.judgeBackups(made.Size(), copies)
}

func (m *machine) judgeBackups(size int64, copies []archive.DatabaseCopy) Result {
	const late = 48 * time.Hour
	fix := fmt.Sprintf("sudo journalctl -u cupola | grep 'backup of the database'   # a daily backup needs %s of free space", sizeText(uint64(size)))
	if len(copies) == 0 {
		return warning("the database has no automatic backup", fix)
	}
	age := m.now.Sub(copies[0].Made)
	text := fmt.Sprintf("last backup of the database %s ago; %d kept", age.Round(time.Minute), len(copies))
	if age > late {
		return warning(text, fix)
	}
	return fine(text)
}

func (m *machine) judgeDisk(free, files, filesFree uint64) Result {
	text := fmt.Sprintf("%s free for %s", sizeText(free), m.DataDir)
	inodes := files > 0 && filesFree < files/20
	switch {
	case free < gib:
		return failure(text, m.elsewhere())
	case inodes:
		return warning(fmt.Sprintf("%d of %d inodes left for %s", filesFree, files, m.DataDir), m.elsewhere())
	case free < 5*gib:
		return warning(text, m.elsewhere())
	}
	return fine(text)
}

func (m *machine) elsewhere() string {
	return "sudo cupola serve --data-dir DIR   # on a larger disk"
}

// traversable checks that containers can reach their files: all parents of the data
// directory need the permission o+x.
func (m *machine) traversable(context.Context) Result {
	for dir := filepath.Dir(m.DataDir); ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(m.path(dir)); err == nil && st.Mode().Perm()&1 == 0 {
			return failure(fmt.Sprintf("containers need to traverse %s, which lacks the permission o+x", dir), "sudo chmod o+x "+dir)
		}
		if dir == filepath.Dir(dir) {
			return fine(m.DataDir)
		}
	}
}

// memory checks what containers can have together.
func (m *machine) memory(context.Context) Result {
	total, free := bulkhead.Memory(m.root)
	text := fmt.Sprintf("%s free of %s", sizeText(uint64(free)), sizeText(uint64(total)))
	switch {
	case free < 256*mib:
		return warning(text+": too little to stage most apps", "ps aux --sort=-rss | head   # and stop unneeded processes, or add memory")
	case free < 512*mib:
		return warning(text+fmt.Sprintf(": a staging gets %s, and needs more for some toolchains", sizeText(uint64(total)/2)), "ps aux --sort=-rss | head   # and stop unneeded processes")
	}
	return fine(text)
}

// nofile checks the limit on open files: the daemon needs about ten per
// container and one per connection.
func (m *machine) nofile(context.Context) Result {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return failed(err, "ulimit -Hn")
	}
	return judgeNofile(l.Max)
}

func judgeNofile(hard uint64) Result {
	const need = 16384
	if hard < need {
		return warning(fmt.Sprintf("limited to %d per process", hard), fmt.Sprintf("sudo prlimit --pid $$ --nofile=%d   # then start cupola from this shell", 64*need))
	}
	if hard > 1<<40 {
		return fine("no limit")
	}
	return fine(fmt.Sprintf("limited to %d per process", hard))
}

// sizeText formats a number of bytes.
func sizeText(n uint64) string {
	switch {
	case n >= 10*gib:
		return fmt.Sprintf("%d GB", n/gib)
	case n >= gib:
		return fmt.Sprintf("%.1f GB", float64(n)/gib)
	}
	return fmt.Sprintf("%d MB", n/mib)
}
