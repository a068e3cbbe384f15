package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/store/cf"
)

// crowd is writes that wait together, so that they come to share batches.
type crowd struct {
	t       *testing.T
	s       *Store
	release chan struct{}
	held    func(error)   // receives the result of the write that all wait for
	age     time.Duration // of the batch when the others join it
	running sync.WaitGroup

	mu  sync.Mutex
	ran []string       // in which order
	txs []*transaction // in which transactions
}

// gather holds the writer until release is closed.
func gather(t *testing.T, s *Store) *crowd {
	t.Helper()
	c := &crowd{t: t, s: s, release: make(chan struct{})}
	c.held = c.fine
	begun := make(chan struct{})
	c.running.Go(func() {
		err := s.Write(t.Context(), func(tx *Tx) error {
			c.note("holder", tx)
			close(begun)
			<-c.release
			s.batch.begun = time.Now().Add(-c.age) // however long it took until all waited
			return nil
		})
		c.held(err)
	})
	<-begun
	return c
}

func (c *crowd) note(name string, tx *Tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran, c.txs = append(c.ran, name), append(c.txs, tx.sql.tx)
}

// add has a user's write wait, and returns when it does.
func (c *crowd) add(ctx context.Context, user string, f func(*Tx) error, check func(error)) {
	c.t.Helper()
	before := c.s.writers.Waiting()
	c.running.Go(func() {
		check(c.s.Write(As(ctx, user), func(tx *Tx) error {
			c.note(user, tx)
			return f(tx)
		}))
	})
	c.until(func() bool { return c.s.writers.Waiting() > before })
}

func (c *crowd) until(f func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("it never came")
		}
	}
}

// end lets all run.
func (c *crowd) end() {
	close(c.release)
	c.running.Wait()
}

func insertOrg(name string) func(*Tx) error {
	return func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: name}) }
}

func orgNames(t *testing.T, s *Store) (names []string) {
	t.Helper()
	read(t, s, func(tx *Tx) error {
		orgs, err := Orgs.All(tx)
		for _, o := range orgs {
			names = append(names, o.Name)
		}
		return err
	})
	return names
}

func (c *crowd) fine(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

func TestWhatIsCommittedIsOnTheDisk(t *testing.T) {
	s := openTest(t)
	var level int
	if err := s.writer.QueryRow("PRAGMA synchronous").Scan(&level); err != nil || level != 2 {
		t.Errorf("synchronous is %d, %v; want 2 (FULL)", level, err)
	}
}

// TestWritesShareACommit wants all that wait in one transaction, each with what
// it wrote, and those that fail without.
func TestWritesShareACommit(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	c.age = time.Nanosecond
	for _, name := range []string{"a", "b", "c"} {
		c.add(t.Context(), name, insertOrg(name), c.fine)
		undone := errors.New("undone")
		c.add(t.Context(), name+" fails", func(tx *Tx) error {
			return errors.Join(insertOrg(name+" undone")(tx), undone)
		}, func(err error) {
			if !errors.Is(err, undone) {
				t.Errorf("got %v; want its own error", err)
			}
		})
		c.add(t.Context(), name+" is refused", insertOrg("a"), func(err error) {
			if !IsTaken(err) {
				t.Errorf("got %v; want that the name is taken", err)
			}
		})
	}
	c.end()
	for _, tx := range c.txs[1:] {
		if tx != c.txs[0] {
			t.Fatalf("%v ran in more than one transaction", c.ran)
		}
	}
	if got := fmt.Sprint(orgNames(t, s)); got != "[a b c]" {
		t.Errorf("got %s", got)
	}
}

// TestSecondWritesWait has one of several users write twice: the second write does
// not delay what the others wrote.
func TestSecondWritesWait(t *testing.T) {
	s := openTest(t)
	s.commitTime = 0
	c := gather(t, s)
	for _, user := range []string{"much", "much", "little"} {
		c.add(t.Context(), user, func(*Tx) error { return nil }, c.fine)
	}
	c.age = 2 * minBatchTime
	c.end()
	if got := fmt.Sprint(c.ran); got != "[holder much little much]" {
		t.Fatalf("got %s", got)
	}
	if c.txs[2] != c.txs[0] || c.txs[3] == c.txs[0] {
		t.Error("the other user's write was not committed before the second of the one who writes much")
	}
}

// TestABatchIsBounded has more wait than one batch takes.
func TestABatchIsBounded(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	for n := range maxBatch + 5 {
		c.add(t.Context(), "", insertOrg(fmt.Sprint(n)), c.fine)
	}
	c.end()
	count := map[*transaction]int{}
	for _, tx := range c.txs {
		if count[tx]++; count[tx] > maxBatch {
			t.Fatalf("more than %d in a batch", maxBatch)
		}
	}
	if names := orgNames(t, s); len(names) != maxBatch+5 {
		t.Errorf("%d orgs; want %d", len(names), maxBatch+5)
	}
}

// TestAPanicIsItsCallersAlone wants the panic in the caller's goroutine, and
// what the others wrote kept. A test's FailNow ends a goroutine likewise.
func TestAPanicIsItsCallersAlone(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	c.add(t.Context(), "before", insertOrg("before"), c.fine)
	for name, end := range map[string]func(){"panics": func() { panic("of one") }, "exits": runtime.Goexit} {
		before := s.writers.Waiting()
		c.running.Go(func() {
			defer func() {
				if r := recover(); name == "panics" && r != "of one" {
					t.Errorf("recovered %v; want the panic", r)
				}
			}()
			s.Write(t.Context(), func(tx *Tx) error {
				if err := insertOrg(name)(tx); err != nil {
					t.Error(err)
				}
				end()
				return nil
			})
			t.Error("Write returned")
		})
		c.until(func() bool { return s.writers.Waiting() > before })
	}
	c.add(t.Context(), "after", insertOrg("after"), c.fine)
	c.end()
	write(t, s, insertOrg("later"))
	if got := fmt.Sprint(orgNames(t, s)); got != "[before after later]" {
		t.Errorf("got %s", got)
	}
}

// TestTheLastOfABatchPanics leaves no other write to commit.
func TestTheLastOfABatchPanics(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	c.add(t.Context(), "first", insertOrg("first"), c.fine)
	before := s.writers.Waiting()
	c.running.Go(func() {
		defer func() { _ = recover() }()
		s.Write(t.Context(), func(*Tx) error { panic("of the last") })
	})
	c.until(func() bool { return s.writers.Waiting() > before })
	c.end()
	if got := fmt.Sprint(orgNames(t, s)); got != "[first]" {
		t.Errorf("got %s", got)
	}
}

// TestCancelledWrites wants one that waits not to run, and one that runs to come
// to its end, with nothing of the others' taken back.
func TestCancelledWrites(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	c.add(t.Context(), "before", insertOrg("before"), c.fine)
	waits, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	c.add(waits, "waits", insertOrg("waits"), func(err error) {
		if !errors.Is(err, context.Canceled) || !IsPassing(err) {
			t.Errorf("got %v; want that it was cancelled", err)
		}
		close(left)
	})
	leave()
	<-left
	runs, stop := context.WithCancel(t.Context())
	c.add(runs, "runs", func(tx *Tx) error {
		stop()
		for n := range 20 { // the driver interrupts what a cancelled context runs
			if err := insertOrg(fmt.Sprint("runs ", n))(tx); err != nil {
				return err
			}
		}
		return nil
	}, c.fine)
	c.add(t.Context(), "after", insertOrg("after"), c.fine)
	c.end()
	if got := orgNames(t, s); len(got) != 22 || got[0] != "before" || got[21] != "after" {
		t.Errorf("got %v", got)
	}
}

// TestCancelledLastCommits cancels writes at the moment at which they may get
// the writer: however that ends, the writes that joined before are not forgotten.
func TestCancelledLastCommits(t *testing.T) {
	s := openTest(t)
	for n := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		c := gather(t, s)
		c.add(t.Context(), "first", insertOrg(fmt.Sprint(n)), c.fine)
		c.add(ctx, "last", func(*Tx) error { return nil }, func(error) {})
		go cancel()
		c.end()
		cancel()
	}
	if got := len(orgNames(t, s)); got != 50 {
		t.Errorf("%d of 50 are there", got)
	}
}

// TestAFullDiskFailsTheBatch wants an error for all whose writes were rolled
// back, and no news of them.
func TestAFullDiskFailsTheBatch(t *testing.T) {
	s, fill, _ := openSmall(t)
	write(t, s, insertOrg("acknowledged"))
	fill()
	news := noted(t, s, func(tx *Tx) error { _, err := Orgs.All(tx); return err })
	c := gather(t, s)
	full := func(err error) {
		if !errors.Is(err, ErrFull) {
			t.Errorf("got %v; want ErrFull", err)
		}
	}
	c.held = full
	c.add(t.Context(), "small", insertOrg("small"), full)
	c.add(t.Context(), "large", func(tx *Tx) error {
		for n := range 20_000 { // more than the cache holds: it is written before the commit
			if err := insertOrg(fmt.Sprint(strings.Repeat("large", 500), n))(tx); err != nil {
				return nil // what a careless function makes of it
			}
		}
		t.Error("the disk has room")
		return nil
	}, full)
	c.add(t.Context(), "next", insertOrg("next"), func(error) {}) // in this batch or in one after it
	c.end()
	if got := fmt.Sprint(orgNames(t, s)); !strings.HasPrefix(got, "[acknowledged") || strings.Contains(got, "small") || strings.Contains(got, "large") {
		t.Errorf("got %.100s", got)
	}
	select {
	case <-news.Stale():
		if len(orgNames(t, s)) == 1 {
			t.Error("there is news of what was rolled back")
		}
	default:
	}
}

// TestNewsComesBeforeTheAnswer wants followers to know of a write in order and
// by when it returns, and of none that began before them.
func TestNewsComesBeforeTheAnswer(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	c.add(t.Context(), "a", func(tx *Tx) error { return ActualLRPs.Insert(tx, actual(0)) }, c.fine)
	var mu sync.Mutex
	var indexes []any
	following := make(chan struct{})
	c.running.Go(func() {
		s.Follow(func(changes []Change) {
			mu.Lock()
			defer mu.Unlock()
			indexes = append(indexes, len(changes))
		})
		close(following)
	})
	c.until(func() bool { return s.writers.Waiting() == 2 })
	c.end()
	<-following
	c = gather(t, s)
	for n := range 3 {
		c.add(t.Context(), "b", func(tx *Tx) error {
			for i := range n + 1 {
				if err := ActualLRPs.Insert(tx, actual(10*(n+1)+i)); err != nil {
					return err
				}
			}
			return nil
		}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(indexes) < n+1 {
				t.Errorf("%v, and news of %d writes, before the answer to the %d.", err, len(indexes), n+1)
			}
		})
	}
	c.end()
	if got := fmt.Sprint(indexes); got != "[1 2 3]" {
		t.Errorf("got news of %s changes; want 1, 2, 3", got)
	}
}

// TestNoUserWaitsForAnothersWrites has one user wait with fifty writes.
func TestNoUserWaitsForAnothersWrites(t *testing.T) {
	s := openTest(t)
	c := gather(t, s)
	for n := range 50 {
		c.add(t.Context(), "greedy", insertOrg(fmt.Sprint(n)), c.fine)
	}
	c.add(t.Context(), "modest", insertOrg("modest"), c.fine)
	c.end()
	if got := fmt.Sprint(c.ran[:4]); !strings.Contains(got, "modest") {
		t.Errorf("ran %s, …; want the modest user's first write among them", got)
	}
}

func TestLongWritesAreLogged(t *testing.T) {
	var text bytes.Buffer
	s := openTest(t)
	s.log = slog.New(slog.NewTextHandler(&text, nil))
	long := func(*Tx) error {
		time.Sleep(longWrite + time.Millisecond)
		return nil
	}
	write(t, s, long) // nothing waits for it
	c := gather(t, s)
	c.add(t.Context(), "somebody", long, c.fine)
	c.add(t.Context(), "another", insertOrg("waits"), c.fine)
	c.end()
	if got := text.String(); strings.Count(got, "user=somebody") != 1 || !strings.Contains(got, "waiting=1") || !strings.Contains(got, "crowd") || s.LongWrites() != int64(strings.Count(got, "\n")) {
		t.Errorf("logged %q, %d long writes; want one of somebody's, with its function", got, s.LongWrites())
	}
}
