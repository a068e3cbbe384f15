package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// keptBy calls f with a connection of the store's writer.
func keptBy(t *testing.T, s *Store, f func(*sql.Conn, *conn)) {
	t.Helper()
	c, err := s.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var kept *conn
	if err := c.Raw(func(d any) error { kept = d.(*conn); return nil }); err != nil {
		t.Fatal(err)
	}
	f(c, kept)
}

func TestStatementsAreKept(t *testing.T) {
	s := openTest(t)
	keptBy(t, s, func(c *sql.Conn, kept *conn) {
		one := func(text string) (n int, err error) {
			return n, c.QueryRowContext(t.Context(), text).Scan(&n)
		}
		for n := range 2 * keptWrites {
			if got, err := one(fmt.Sprint("SELECT ", n)); err != nil || got != n {
				t.Fatalf("got %d, %v; want %d", got, err, n)
			}
		}
		if n := len(kept.idle); n != keptWrites {
			t.Errorf("%d statements are kept; want %d", n, keptWrites)
		}
		last := fmt.Sprint("SELECT ", 2*keptWrites-1)
		before := kept.idle[last]
		if _, err := one(last); err != nil || before == nil || kept.idle[last] != before {
			t.Errorf("%s: %v, and it was compiled again; want it kept", last, err)
		}
		if kept.idle["SELECT 0"] != nil {
			t.Error("what was used longest ago is kept; want it gone")
		}
	})
}

// A query may run while another of the same text has rows left.
func TestSameStatementTwiceAtOnce(t *testing.T) {
	s := openTest(t)
	keptBy(t, s, func(c *sql.Conn, kept *conn) {
		const text = "WITH n(v) AS (VALUES (1), (2), (3)) SELECT v FROM n WHERE v >= ?"
		outer, err := c.QueryContext(t.Context(), text, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		var got []int
		for outer.Next() {
			var a, b int
			if err := errors.Join(outer.Scan(&a), c.QueryRowContext(t.Context(), text, 3).Scan(&b)); err != nil {
				t.Fatal(err)
			}
			got = append(got, a, b)
		}
		if want := "[1 3 2 3 3 3]"; fmt.Sprint(got) != want || outer.Err() != nil {
			t.Errorf("got %v, %v; want %s", got, outer.Err(), want)
		}
		outer.Close()
		if len(kept.idle) == 0 || kept.idle[text] == nil {
			t.Error("the statement is not kept")
		}
	})
}

// A statement that failed, or whose client left, is as good as new.
func TestStatementAfterAFailure(t *testing.T) {
	s := openTest(t)
	keptBy(t, s, func(c *sql.Conn, _ *conn) {
		for _, text := range []string{"CREATE TABLE one (n INTEGER PRIMARY KEY)", "INSERT INTO one VALUES (1)"} {
			if _, err := c.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.ExecContext(t.Context(), "INSERT INTO one VALUES (?)", 1); err == nil {
			t.Error("a second 1 was taken; want an error")
		}
		if _, err := c.ExecContext(t.Context(), "INSERT INTO one VALUES (?)", 2); err != nil {
			t.Error(err)
		}
		const all = "SELECT n FROM one ORDER BY n"
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := c.QueryContext(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		cancel()
		for rows.Next() { // until it is closed
		}
		if err := rows.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := c.ExecContext(t.Context(), "ALTER TABLE one ADD COLUMN m DEFAULT 7"); err != nil {
			t.Fatal(err)
		}
		var sum int
		if err := c.QueryRowContext(t.Context(), "SELECT sum(n + m) FROM one").Scan(&sum); err != nil || sum != 17 {
			t.Errorf("got %d, %v; want 17", sum, err)
		}
		var n int
		if err := c.QueryRowContext(t.Context(), all).Scan(&n); err != nil || n != 1 {
			t.Errorf("got %d, %v; want 1", n, err)
		}
	})
}

// A kept statement of which a parameter is the limit is compiled at each use all
// the same.
func TestNoLimitIsAParameter(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`(?i)\blimit [?:@$]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := parameter.Find(text); found != nil {
			t.Errorf("%s has %q; want a number there", file, found)
		}
	}
}

// While users compete, a transaction lets others run.
func TestTransactionsPause(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := openTest(t)
	var competing, ran atomic.Bool
	s.PauseWhile(competing.Load)
	for _, compete := range []bool{false, true} {
		competing.Store(compete)
		keptBy(t, s, func(_ *sql.Conn, kept *conn) {
			kept.ran = time.Time{}
			ran.Store(false)
			go ran.Store(true)
			_ = kept.guard(func() error {
				if !ran.Load() && compete {
					t.Error("nothing else ran")
				}
				return nil
			})
			kept.ran = time.Time{}
			if paused := kept.pause(); paused != compete {
				t.Errorf("competing %t: paused %t", compete, paused)
			}
			if kept.ran.IsZero() {
				t.Errorf("competing %t: the next row would ask again", compete)
			}
		})
	}
}
