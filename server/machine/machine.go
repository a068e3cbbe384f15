package machine

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/lrp"
	"cupola/server/admin/archive"
	"cupola/store"
)

// Config says what to show.
type Config struct {
	DataDir    string // absolute
	Database   string // its file
	Version    string // of the daemon
	Started    time.Time
	Containers func() int
	Store      *store.Store
	Stats      func(instanceGUID string) (lrp.Stats, bool)
	Requests   func() map[string]int64 // to apps since the start, by GUID
	Doctor     []string                // the command line that prints what cupola doctor finds, as JSON
	Log        *slog.Logger
}

// Machine serves GET /v1/machine, GET /v1/machine/use and GET /v1/machine/checks. It does not authenticate.
type Machine struct {
	Config
	root   string // "/", except in tests
	run    func(ctx context.Context, command []string) ([]byte, error)
	usage  usage
	checks checks
}

// New returns a Machine.
func New(c Config) *Machine {
	return &Machine{Config: c, root: "/", run: runCommand, checks: checks{turn: make(chan struct{}, 1)}}
}

// State is the machine at one moment, as GET /v1/machine shows it.
type State struct {
	Version    string                `json:"version"`
	StartedAt  time.Time             `json:"started_at"`
	Now        time.Time             `json:"now"`
	Hostname   string                `json:"hostname"`
	Kernel     string                `json:"kernel"`
	Cgroup     int                   `json:"cgroup_version"`
	CPUs       int                   `json:"cpus"`
	CPUUsed    float64               `json:"cpu_used"` // a share of all CPUs, from 0 to 1, since the last request
	Load       []float64             `json:"load"`     // of 1, 5 and 15 minutes
	Memory     Memory                `json:"memory"`
	Disk       Disk                  `json:"disk"`
	Pressure   map[string][]Pressure `json:"pressure"` // by cpu, memory and io; without those that the kernel does not tell
	Database   Database              `json:"database"`
	Backup     *Backup               `json:"last_backup"` // null: there is none
	Containers int                   `json:"containers"`
	Goroutines int                   `json:"goroutines"`
	OpenFiles  int                   `json:"open_files"` // of the daemon
}

// Memory is the machine's, and the daemon's part of it.
type Memory struct {
	Total     uint64 `json:"total_bytes"`
	Available uint64 `json:"available_bytes"`
	SwapTotal uint64 `json:"swap_total_bytes"`
	SwapFree  uint64 `json:"swap_free_bytes"`
	Daemon    uint64 `json:"daemon_bytes"` // resident
}

// Disk is the file system of the data directory.
type Disk struct {
	Path       string `json:"path"`
	Total      uint64 `json:"total_bytes"`
	Available  uint64 `json:"available_bytes"`
	Inodes     uint64 `json:"inodes"`
	InodesFree uint64 `json:"inodes_free"`
}

// Database is the sizes of the database's files.
type Database struct {
	Bytes int64 `json:"bytes"`
	WAL   int64 `json:"wal_bytes"`
}

// Backup is the last automatic backup of the database.
type Backup struct {
	MadeAt time.Time `json:"made_at"`
	Bytes  int64     `json:"bytes"` // compressed
	Kept   int       `json:"kept"`  // how many there are
}

// ServeHTTP serves the state.
func (m *Machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer(w, m.State(r.Context()))
}

// State reads what is now. What the kernel or the disk does not tell is left at zero.
func (m *Machine) State(ctx context.Context) State {
	used := m.cpuUsed(ctx)
	s := State{Version: m.Version, StartedAt: m.Started.UTC(), Now: time.Now().UTC(), Kernel: m.read("proc/sys/kernel/osrelease"), Cgroup: m.cgroup(),
		CPUs: runtime.NumCPU(), CPUUsed: used, Load: m.load(), Memory: m.memory(), Disk: disk(m.DataDir), Pressure: m.pressures(),
		Database: Database{fileBytes(m.Database), fileBytes(m.Database + "-wal")}, Backup: m.backup(), Containers: m.Containers(),
		Goroutines: runtime.NumGoroutine(), OpenFiles: m.openFiles()}
	s.Hostname, _ = os.Hostname()
	return s
}

// disk is the zero value but for the path where the file system does not answer.
func disk(path string) Disk {
	d := Disk{Path: path}
	var st unix.Statfs_t
	if unix.Statfs(path, &st) == nil {
		size := uint64(st.Bsize) //nolint:gosec // it is not negative
		d.Total, d.Available, d.Inodes, d.InodesFree = st.Blocks*size, st.Bavail*size, st.Files, st.Ffree
	}
	return d
}

// fileBytes is 0 for a file that is not there.
func fileBytes(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (m *Machine) backup() *Backup {
	copies, err := archive.DatabaseCopies(filepath.Join(filepath.Dir(m.Database), "backups"))
	if err != nil || len(copies) == 0 {
		return nil
	}
	return &Backup{MadeAt: copies[0].Made.UTC(), Bytes: copies[0].Bytes, Kept: len(copies)}
}

// usage remembers how much the CPUs had worked when it was last asked.
type usage struct {
	mu   sync.Mutex
	at   time.Time
	last ticks
	used float64
}

// The shortest and the longest time over which the use of the CPUs is measured.
const (
	minSample = 200 * time.Millisecond
	maxSample = 10 * time.Second
)

// cpuUsed is the share of all CPUs that was used since the last request, of which
// the first, and one after a pause, takes a moment.
func (m *Machine) cpuUsed(ctx context.Context) float64 {
	u := &m.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.at) > maxSample {
		u.at, u.last = time.Now(), m.ticks()
		select {
		case <-time.After(minSample):
		case <-ctx.Done():
			return u.used
		}
	}
	if time.Since(u.at) < minSample {
		return u.used
	}
	now := m.ticks()
	if all := now.all - u.last.all; all > 0 {
		u.used = 1 - float64(now.idle-u.last.idle)/float64(all)
	}
	u.at, u.last = time.Now(), now
	return u.used
}
