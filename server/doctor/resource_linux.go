package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// disk checks the room for the data directory.
func (m *machine) disk(context.Context) Result {
	var st unix.Statfs_t
	if err := unix.Statfs(m.base(), &st); err != nil {
		return failed(fmt.Errorf("look at %s: %w", m.base(), err), m.elsewhere())
	}
	return m.judgeDisk(st.Bavail*uint64(st.Bsize), st.Files, st.Ffree)
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
		return warning(text, "sudo apt-get clean   # or "+m.elsewhere())
	}
	return fine(text)
}

func (m *machine) elsewhere() string {
	return "sudo cupola serve --data-dir DIR   # on a larger disk"
}

// way checks that containers can reach their files: each directory above the
// data directory must let others pass.
func (m *machine) way(context.Context) Result {
	for dir := filepath.Dir(m.DataDir); ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(m.path(dir)); err == nil && st.Mode().Perm()&1 == 0 {
			return failure(fmt.Sprintf("containers reach their files through %s, which lets nobody pass", dir), "sudo chmod o+x "+dir)
		}
		if dir == filepath.Dir(dir) {
			return fine(m.DataDir)
		}
	}
}

func (m *machine) memory(context.Context) Result {
	fields := map[string]uint64{}
	for line := range strings.Lines(m.read("proc/meminfo")) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		fields[name] = n * kib
	}
	total, free := fields["MemTotal"], fields["MemAvailable"]
	text := fmt.Sprintf("%s free of %s", sizeText(free), sizeText(total))
	if free < 512*mib {
		return warning(text+": a staging app may take 1 GB", "ps aux --sort=-rss | head   # and stop what is not needed")
	}
	return fine(text)
}

// nofile checks how many files the daemon may open: some ten per container,
// and one for each connection.
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
		return warning(fmt.Sprintf("a process may open %d files", hard), fmt.Sprintf("sudo prlimit --pid $$ --nofile=%d   # then start cupola from this shell", 64*need))
	}
	if hard > 1<<40 {
		return fine("no limit")
	}
	return fine(fmt.Sprintf("a process may open %d", hard))
}

// sizeText writes a number of bytes for people.
func sizeText(n uint64) string {
	switch {
	case n >= 10*gib:
		return fmt.Sprintf("%d GB", n/gib)
	case n >= gib:
		return fmt.Sprintf("%.1f GB", float64(n)/gib)
	}
	return fmt.Sprintf("%d MB", n/mib)
}
