package history

import (
	"os"
	"path/filepath"
	"testing"

	"cupola/server/logcache/record"
)

// seeds are the files of a store.
func seeds(f *testing.F, suffix string) {
	dir, c := f.TempDir(), &clock{midnight}
	s, _ := opened(f, dir, c)
	live(s, c, 300, 1)
	names, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if len(names) == 0 {
		f.Fatal("no files")
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// rechecked gives records the check that belongs to them, so that what is behind the
// check is reached.
func rechecked(b []byte) (all []byte) {
	for len(b) > 1 {
		n := min(int(b[0])+1, len(b)-1)
		all = record.Append(all, b[1], func(to []byte) []byte { return append(to, b[2:1+n]...) })
		b = b[1+n:]
	}
	return all
}

func FuzzJournal(f *testing.F) {
	seeds(f, journalSuffix)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, rechecked(b)} {
			s, _ := opened(t, t.TempDir(), &clock{midnight})
			l := &s.levels[1]
			l.end = midnight + 3600
			r := replay{store: s, level: l}
			if whole := r.read(b); whole < 0 || whole > len(b) {
				t.Fatalf("got %d of %d bytes", whole, len(b))
			}
			read(t, s, Query{}, "a", "cpu")
		}
	})
}

func FuzzBlock(f *testing.F) {
	seeds(f, blockSuffix)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "block")
		for _, b := range [][]byte{b, rechecked(b)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s, _ := opened(t, dir, &clock{midnight})
			s.levels[1].blocks = []block{{path, midnight, int64(len(b))}}
			s.levels[1].end = midnight + 3600
			q := Query{Sources: map[string]bool{"a": true}, To: midnight, MaxBytes: 1 << 20, Wanted: func(*Origin, string) bool { return true }}
			selected, _ := s.Select(t.Context(), q)
			parseArea(b, func(_ []byte, all []found) {})
			for _, m := range selected {
				for _, p := range m.Pieces {
					for it := p.Chunk.Iterator(nil); it.Next() != 0; {
						it.At()
					}
				}
			}
		}
	})
}
