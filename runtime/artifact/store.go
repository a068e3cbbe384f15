package artifact

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/durable"
	"cupola/runtime/egress"
)

// Diego's limits.
const (
	maxBytes   = 10 << 30         // of all files that are kept, and of one
	moveTime   = 10 * time.Minute // of one download or upload
	concurrent = 5
	attempts   = 3
)

// Config says what a Store is made of.
type Config struct {
	Dir      string // made 0700; what is in it may be deleted while no Store has it
	MaxBytes int64  // of the files that are kept; 0: 10 GB
}

// Store fetches and keeps archives.
type Store struct {
	dir    string
	max    int64
	client *http.Client
	slots  chan struct{}

	mu   sync.Mutex
	keys map[string]*use // by cache key
}

// use is the right to what is kept under a key.
type use struct {
	turn chan struct{} // held by the one who has it
	want int           // how many have it, or wait for it
}

// Source is where an archive comes from.
type Source struct {
	URL              string // http or https
	Algorithm, Value string // of a checksum: md5, sha1, sha256 or sha512, and hex; "" for any content
	CacheKey         string // "": it is not kept
}

// File is an archive on this machine. Release gives it up.
type File struct {
	Path   string
	SHA256 string // hex; "" for a file of Local without one
	Size   int64
	Cached bool // it was not moved

	temporary bool
}

// Release gives the file up. The zero value may be released.
func (f File) Release() {
	if f.temporary {
		_ = os.Remove(f.Path) // New deletes what stays
	}
}

// Local opens a file on this machine. Its size counts as transferred.
func Local(path, sha256 string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	return File{Path: path, SHA256: sha256, Size: info.Size()}, nil
}

// New makes a Store and deletes what an earlier one left half done.
func New(cfg Config) (*Store, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make artifact directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(cfg.Dir, temporary+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	// Clients of the BBS are operators: they may run anything anywhere.
	transport := egress.Guard{Operator: true}.Transport(30 * time.Second)
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout, transport.IdleConnTimeout = 30*time.Second, time.Minute, time.Minute
	transport.DisableCompression = true // or a checksum would be of something else
	return &Store{
		dir: cfg.Dir, max: cmp.Or(cfg.MaxBytes, maxBytes), client: &http.Client{Transport: transport},
		slots: make(chan struct{}, concurrent), keys: map[string]*use{},
	}, nil
}

// temporary is the prefix of temporary files, which a killed daemon may leave.
const temporary = "tmp-"

func (s *Store) temp() string { return filepath.Join(s.dir, temporary+rand.Text()) }

// kept is what is known of a file that is kept.
type kept struct {
	SHA256       string
	Size         int64
	ETag         string
	LastModified string
	Sums         map[string]string // hex, by algorithm
}

// names are where a file with a cache key lies, and what is known of it.
func (s *Store) names(key string) (data, about string) {
	sum := sha256.Sum256([]byte(key))
	base := filepath.Join(s.dir, hex.EncodeToString(sum[:]))
	return base + ".data", base + ".json"
}

// lock keeps others from a cache key.
func (s *Store) lock(ctx context.Context, key string) (unlock func(), err error) {
	s.mu.Lock()
	u := s.keys[key]
	if u == nil {
		u = &use{turn: make(chan struct{}, 1)}
		s.keys[key] = u
	}
	u.want++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.want--; u.want == 0 {
			delete(s.keys, key)
		}
	}
	select {
	case u.turn <- struct{}{}:
		return func() { <-u.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// find reads what is kept under a key; nothing where there is none.
func (s *Store) find(key string) kept {
	data, about := s.names(key)
	var k kept
	content, err := os.ReadFile(about)
	if err != nil || json.Unmarshal(content, &k) != nil {
		return kept{}
	}
	if info, err := os.Stat(data); err != nil || info.Size() != k.Size {
		return kept{}
	}
	return k
}

// store puts a file under a key. A crash in between leaves a file without a
// description, which is as good as none.
func (s *Store) store(key, file string, k kept) error {
	data, about := s.names(key)
	content, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.Remove(about); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.Rename(file, data); err != nil { // what is found later is not summed again
		return err
	}
	next := s.temp()
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	if err := durable.Rename(next, about); err != nil {
		return err
	}
	return s.shrink(data)
}

// use gives its own name to what is kept under a key: another download may
// replace it at any time.
func (s *Store) use(key string, k kept, cached bool) (File, error) {
	data, _ := s.names(key)
	name := s.temp()
	if err := os.Link(data, name); err != nil {
		return File{}, err
	}
	now := time.Now()
	_ = os.Chtimes(data, now, now) // it only ages a file early
	return File{Path: name, SHA256: k.SHA256, Size: k.Size, Cached: cached, temporary: true}, nil
}

// shrink deletes the files that were not used for longest, but for one.
func (s *Store) shrink(but string) error {
	found, err := filepath.Glob(filepath.Join(s.dir, "*.data"))
	if err != nil {
		return err
	}
	type file struct {
		name string
		size int64
		used time.Time
	}
	var files []file
	var total int64
	for _, name := range found {
		if info, err := os.Stat(name); err == nil {
			files = append(files, file{name, info.Size(), info.ModTime()})
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= s.max {
			return nil
		}
		if f.name == but {
			continue
		}
		total -= f.size
		if err := errors.Join(os.Remove(strings.TrimSuffix(f.name, ".data")+".json"), os.Remove(f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
