package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// Pages reads which pages of the database change. It notes them from when it is made until
// it is closed, in memory: at most some bytes of each page. Its methods are for one goroutine.
type Pages struct {
	log     *pageLog
	changed map[uint32]bool // since the last Take; as all, it belongs to who has the writer
	all     bool            // it is not known which: all of them
}

// PageSet says which pages of a database there are.
type PageSet struct {
	PageSize int      // bytes
	Count    uint32   // pages of the whole database
	Whole    bool     // all of them
	Numbers  []uint32 `json:",omitempty"` // of those that are there, ascending, the first is 1; none if Whole
}

// Taken is what Take took. The zero value is nothing.
type Taken struct {
	PageSet
	At     time.Time // the database as of then
	Schema int       // the number of its last migration
	Blobs  []string  // digests of all that its rows name
	Images []string  // references, likewise
}

// FollowPages begins to note the pages that change. The first Take takes all.
func (s *Store) FollowPages(ctx context.Context) (*Pages, error) {
	p := &Pages{log: s.pages, changed: map[uint32]bool{}, all: true}
	t, err := s.pages.pin(ctx, func() { s.pages.readers[p] = true })
	if err != nil {
		return nil, err
	}
	return p, t.Rollback()
}

// Close ends the notes.
func (p *Pages) Close(ctx context.Context) error {
	t, err := p.log.pin(ctx, func() { delete(p.log.readers, p) })
	if err != nil {
		return err
	}
	return t.Rollback()
}

// Take writes the pages that changed since the last Take, and those of also, to a file
// that must not be there, all as of one moment; others go on writing. If there are none it
// writes nothing. whole takes all pages. If Take fails, the next one takes the same again.
func (p *Pages) Take(ctx context.Context, file string, also map[uint32]bool, whole bool) (taken Taken, err error) {
	wanted := maps.Clone(also)
	if wanted == nil {
		wanted = map[uint32]bool{}
	}
	at := time.Time{}
	t, err := p.log.pin(ctx, func() {
		at = p.log.s.now().UTC()
		maps.Copy(wanted, p.changed)
		whole = whole || p.all
		clear(p.changed)
		p.all = false
	})
	if err != nil {
		return Taken{}, err
	}
	defer func() {
		err = errors.Join(err, t.Rollback())
		if err != nil {
			err = errors.Join(err, p.giveBack(ctx, wanted, whole))
		}
	}()
	if len(wanted) == 0 && !whole {
		return Taken{At: at}, nil
	}
	taken = Taken{PageSet: PageSet{Whole: whole, Numbers: slices.Sorted(maps.Keys(wanted))}, At: at}
	return taken, nameFault(p.read(ctx, t, file, &taken))
}

// giveBack notes again the pages of a failed Take.
func (p *Pages) giveBack(ctx context.Context, pages map[uint32]bool, whole bool) error {
	t, err := p.log.pin(context.WithoutCancel(ctx), func() {
		maps.Copy(p.changed, pages)
		p.all = p.all || whole
	})
	if err != nil {
		return err
	}
	return t.Rollback()
}

// read writes pages of a transaction to a file, and completes what is said of them.
func (p *Pages) read(ctx context.Context, t *transaction, file string, taken *Taken) (err error) {
	if err := t.QueryRowContext(ctx, "PRAGMA page_size").Scan(&taken.PageSize); err != nil {
		return err
	}
	if err := t.QueryRowContext(ctx, "PRAGMA page_count").Scan(&taken.Count); err != nil {
		return err
	}
	if err := t.QueryRowContext(ctx, "PRAGMA user_version").Scan(&taken.Schema); err != nil {
		return err
	}
	if err := taken.name(p.log.s.newTx(ctx, t)); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 64<<10)
	if taken.Whole {
		taken.Numbers = nil
		err = writePages(ctx, t, out, taken.PageSize, "SELECT data FROM sqlite_dbpage ORDER BY pgno")
		return errors.Join(err, out.Flush())
	}
	// Those beyond the end are not there any longer.
	taken.Numbers = slices.DeleteFunc(taken.Numbers, func(n uint32) bool { return n > taken.Count })
	numbers, err := json.Marshal(taken.Numbers)
	if err != nil {
		return err
	}
	err = writePages(ctx, t, out, taken.PageSize, "SELECT p.data FROM json_each(?) n CROSS JOIN sqlite_dbpage p ON p.pgno = n.value", string(numbers))
	return errors.Join(err, out.Flush())
}

// name adds what rows name.
func (t *Taken) name(tx *Tx) (err error) {
	blobs := map[string]bool{}
	if err := tx.NamedBlobs(blobs); err != nil {
		return err
	}
	delete(blobs, "")
	t.Blobs = slices.Sorted(maps.Keys(blobs))
	t.Images, err = tx.NamedImages()
	return err
}

func writePages(ctx context.Context, t *transaction, w io.Writer, size int, query string, args ...any) error {
	rows, err := t.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var page []byte
		if err := rows.Scan(&page); err != nil {
			return err
		}
		if len(page) != size {
			return fmt.Errorf("a page has %d bytes instead of %d", len(page), size)
		}
		if _, err := w.Write(page); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ApplyPages writes pages that Take took into the file of a database that is not open. It
// is on disk when ApplyPages returns; if that fails, the file is worth nothing.
func ApplyPages(file string, set PageSet, pages io.Reader) (err error) {
	if err := set.Check(); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
	if err := f.Truncate(int64(set.Count) * int64(set.PageSize)); err != nil {
		return err
	}
	page := make([]byte, set.PageSize)
	for i := range set.len() {
		n := uint32(i) + 1
		if !set.Whole {
			n = set.Numbers[i]
		}
		if _, err := io.ReadFull(pages, page); err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
		if _, err := f.WriteAt(page, int64(n-1)*int64(set.PageSize)); err != nil {
			return err
		}
	}
	return nil
}

func (s PageSet) len() int {
	if s.Whole {
		return int(s.Count)
	}
	return len(s.Numbers)
}

// Bytes is what the pages have together.
func (s PageSet) Bytes() int64 { return int64(s.len()) * int64(s.PageSize) }

// Check refuses what no Take wrote, before anything is made of it.
func (s PageSet) Check() error {
	if s.PageSize < 512 || s.PageSize > 65536 || s.PageSize&(s.PageSize-1) != 0 || s.Count == 0 || s.Whole && len(s.Numbers) > 0 {
		return fmt.Errorf("%d pages of %d bytes are not a database", s.Count, s.PageSize)
	}
	for i, n := range s.Numbers {
		if n < 1 || n > s.Count || i > 0 && n <= s.Numbers[i-1] {
			return fmt.Errorf("page %d of %d is at the wrong place", n, s.Count)
		}
	}
	return nil
}
