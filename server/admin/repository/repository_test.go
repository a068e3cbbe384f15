package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"pgregory.net/rapid"

	"cupola/server/admin/repository/storage"
)

// world is a repository in a directory, and the key that opens its backups.
type world struct {
	*Repository
	t   *testing.T
	dir string
	key *age.X25519Identity
}

func newWorld(t *testing.T) *world {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), key: key}
	w.Repository, err = OpenFor(t.Context(), w.storage(), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) storage() storage.Storage {
	w.t.Helper()
	s, err := storage.Open(w.t.Context(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) save(content []byte) Saved {
	w.t.Helper()
	saved, err := w.Save(w.t.Context(), SaveOptions{Version: "1", Recipients: []age.Recipient{w.key.Recipient()}}, writing(content))
	if err != nil {
		w.t.Fatal(err)
	}
	return saved
}

// writing writes content in pieces of odd sizes.
func writing(content []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		for piece := range slices.Chunk(content, 77_777) {
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
}

func (w *world) load(name string) ([]byte, error) {
	s, err := w.Find(w.t.Context(), name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = w.Load(w.t.Context(), s, []age.Identity{w.key}, &out)
	return out.Bytes(), err
}

func (w *world) chunkFiles() []string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "chunks/*/*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

func random(size int) []byte {
	content := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)})
	_, _ = source.Read(content)
	return content
}

// TestOnlyWhatChangedIsSent inserts a block in the middle of a large stream: all but the
// chunk that it falls into is there already.
func TestOnlyWhatChangedIsSent(t *testing.T) {
	w := newWorld(t)
	first := random(20 << 20)
	saved := w.save(first)
	if saved.Added < int64(len(first)) || saved.Size != int64(len(first)) {
		t.Fatalf("sent %d bytes for %d that cannot be compressed", saved.Added, len(first))
	}
	next := slices.Concat(first[:9<<20], make([]byte, block), first[9<<20:])
	if again := w.save(next); again.Added > 3*chunkMax || again.Added < block {
		t.Errorf("sent %d bytes for one block that is new", again.Added)
	}
	if got, err := w.load("latest"); err != nil || !bytes.Equal(got, next) {
		t.Errorf("loaded %d bytes of %d (%v)", len(got), len(next), err)
	}
}

// TestCutsGiveTheStream holds that chunks are the stream, however it was written, and
// that none is too large.
func TestCutsGiveTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := random(rapid.IntRange(0, 9<<20).Draw(t, "size"))
		if rapid.Bool().Draw(t, "zero") {
			clear(content)
		}
		var got []byte
		c := &cutter{each: func(chunk []byte) error {
			if len(chunk) > chunkMax || len(chunk) == 0 {
				t.Fatalf("a chunk of %d bytes", len(chunk))
			}
			got = append(got, chunk...)
			return nil
		}}
		for piece := range slices.Chunk(content, rapid.IntRange(1000, 5<<20).Draw(t, "piece")) {
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("got %d bytes of %d (%v)", len(got), len(content), err)
		}
	})
}

// TestDamageIsFound damages the storage in each way, and expects that neither verify nor
// load takes it for a backup.
func TestDamageIsFound(t *testing.T) {
	for name, damage := range map[string]func(w *world) error{
		"a flipped bit": func(w *world) error {
			file := w.chunkFiles()[0]
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(file, text, 0o600)
		},
		"a cut chunk":   func(w *world) error { return os.Truncate(w.chunkFiles()[0], 300) },
		"a lost chunk":  func(w *world) error { return os.Remove(w.chunkFiles()[0]) },
		"two exchanged": func(w *world) error { return os.Rename(w.chunkFiles()[0], w.chunkFiles()[1]) },
		"a snapshot of somebody": func(w *world) error {
			return os.WriteFile(filepath.Join(w.dir, "snapshots/20300101T000000Z.json"), []byte(`{"Size":1,"Chunks":[{"ID":"../../etc/passwd","Size":1}]}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.save(random(5 << 20))
			if damaged, err := w.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) > 0 {
				t.Fatalf("before: %v (%v)", damaged, err)
			}
			if err := damage(w); err != nil {
				t.Fatal(err)
			}
			if damaged, err := w.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) != 1 {
				t.Errorf("verify found %v (%v)", damaged, err)
			}
			if _, err := w.load("latest"); err == nil {
				t.Error("it was loaded")
			}
		})
	}
}

// TestForeignKeysOpenNothing tries another key, and a repository of another cupola.
func TestForeignKeysOpenNothing(t *testing.T) {
	w := newWorld(t)
	content := bytes.Repeat([]byte("a secret "), 100_000)
	w.save(content)
	for _, file := range w.chunkFiles() {
		text, err := os.ReadFile(file)
		if err != nil || bytes.Contains(text, []byte("a secret")) {
			t.Errorf("%s can be read (%v)", file, err)
		}
	}
	own := w.key
	w.key, _ = age.GenerateX25519Identity()
	if _, err := w.load("latest"); err == nil || !strings.Contains(err.Error(), "the key does not open this backup") {
		t.Errorf("with another key: %v", err)
	}
	w.key = own
	if _, err := OpenFor(t.Context(), w.storage(), []byte("another")); err == nil || !strings.Contains(err.Error(), "another cupola") {
		t.Errorf("of another cupola: %v", err)
	}
}

// broken is a storage that fails after some puts.
type broken struct {
	storage.Storage
	left int
}

var errBroken = errors.New("the storage is gone")

func (b *broken) Put(ctx context.Context, name string, content []byte) error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return b.Storage.Put(ctx, name, content)
}

// overtaken is a storage to which another connection writes the same just before each put, which fails.
type overtaken struct{ storage.Storage }

func (o overtaken) Put(ctx context.Context, name string, content []byte) error {
	return errors.Join(o.Storage.Put(ctx, name, content), errBroken)
}

// TestMadeByTwo makes a repository at the same time as another connection.
func TestMadeByTwo(t *testing.T) {
	w := &world{t: t, dir: t.TempDir()}
	if _, err := OpenFor(t.Context(), overtaken{w.storage()}, []byte("secret")); err != nil {
		t.Error(err)
	}
	w.dir = t.TempDir()
	if _, err := OpenFor(t.Context(), &broken{w.storage(), 0}, []byte("secret")); !errors.Is(err, errBroken) {
		t.Errorf("got %v of a storage that cannot be written", err)
	}
}

// TestResumesWhatWasCutOff breaks a backup off, and expects that the next one sends the
// rest alone, and that nothing of it is pruned meanwhile.
func TestResumesWhatWasCutOff(t *testing.T) {
	w := newWorld(t)
	content := random(12 << 20)
	w.Repository.storage = &broken{w.storage(), 5}
	if _, err := w.Save(t.Context(), SaveOptions{Recipients: []age.Recipient{w.key.Recipient()}}, writing(content)); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	w.Repository.storage = w.storage()
	if names, err := w.Names(t.Context()); err != nil || len(names) > 0 {
		t.Fatalf("there is half a backup: %v (%v)", names, err)
	}
	if _, err := w.Prune(t.Context(), Keep{}); err != nil || len(w.chunkFiles()) != 5 {
		t.Fatalf("%d chunks are left of 5 (%v)", len(w.chunkFiles()), err)
	}
	var there int64
	for _, file := range w.chunkFiles() {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		there += info.Size()
	}
	if saved := w.save(content); saved.Added > int64(len(content))-there+64<<10 {
		t.Errorf("sent %d bytes, where %d of %d were there", saved.Added, there, len(content))
	}
	if got, err := w.load("latest"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("loaded %d bytes of %d (%v)", len(got), len(content), err)
	}
}

// TestPruneRemovesChunksOfNone keeps one of two backups, and removes what only the other
// had once that is a day old.
func TestPruneRemovesChunksOfNone(t *testing.T) {
	w := newWorld(t)
	first := w.save(random(3 << 20))
	old := w.chunkFiles()
	for _, file := range old {
		before := time.Now().Add(-2 * orphanAge)
		if err := os.Chtimes(file, before, before); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(w.dir, "snapshots", first.Name+".json"), filepath.Join(w.dir, "snapshots/20260101T000000Z.json")); err != nil {
		t.Fatal(err)
	}
	content := random(4 << 20)
	w.save(content)
	removed, err := w.Prune(t.Context(), Keep{})
	if err != nil || !slices.Equal(removed, []string{"20260101T000000Z"}) {
		t.Fatalf("removed %v (%v)", removed, err)
	}
	for _, file := range old {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", file)
		}
	}
	if got, err := w.load("latest"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("loaded %d bytes of %d (%v)", len(got), len(content), err)
	}
}

// TestBackupsOfOneSecond makes three at once: each has a name, and can be read.
func TestBackupsOfOneSecond(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		w.save([]byte{byte(n)})
	}
	names, err := w.Names(t.Context())
	if err != nil || len(names) != 3 {
		t.Fatalf("got %q (%v); want three", names, err)
	}
	for n, name := range names {
		if got, err := w.load(name); err != nil || !bytes.Equal(got, []byte{byte(n)}) {
			t.Errorf("%s: got %v (%v)", name, got, err)
		}
	}
}

// TestKeep holds which backups stay of two months with two a day.
func TestKeep(t *testing.T) {
	var names []string
	for day := range 60 {
		at := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, day)
		names = append(names, at.Format(stamp), at.Add(12*time.Hour).Format(stamp))
	}
	left := func(k Keep) (all []string) {
		dropped := k.dropped(names)
		for _, n := range names {
			if !slices.Contains(dropped, n) {
				all = append(all, strings.TrimSuffix(n, "0000Z")[4:])
			}
		}
		return all
	}
	for _, c := range []struct {
		keep Keep
		want string
	}{
		{Keep{}, "[0301T15]"},
		{Keep{Last: 3}, "[0228T15 0301T03 0301T15]"},
		{Keep{Daily: 2}, "[0228T15 0301T15]"},
		{Keep{Weekly: 3}, "[0215T15 0222T15 0301T15]"},
		{Keep{Monthly: 5}, "[0131T15 0228T15 0301T15]"},
		{Keep{Last: 1, Daily: 1, Weekly: 2, Monthly: 2}, "[0222T15 0228T15 0301T15]"},
	} {
		if got := fmt.Sprint(left(c.keep)); got != c.want {
			t.Errorf("%+v: got %s; want %s", c.keep, got, c.want)
		}
	}
}

// FuzzSnapshot reads what may be anybody's as a snapshot.
func FuzzSnapshot(f *testing.F) {
	f.Add(`{"Size":5,"SHA256":"` + strings.Repeat("0", 64) + `","Chunks":[{"ID":"` + strings.Repeat("a", 64) + `","Size":5}]}`)
	f.Add(`{"Size":-1}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		s, err := storage.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "snapshots/20260101T000000Z.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		r := &Repository{storage: s}
		if found, err := r.Find(t.Context(), "latest"); err == nil {
			if err := r.Load(t.Context(), found, nil, io.Discard); err == nil && found.Size > 0 {
				t.Errorf("%q was loaded", text)
			}
		}
	})
}
