package store

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"modernc.org/sqlite"
)

// Readers that are not used are closed but for one, and the writer drops pages; both work on.
func TestReleaseMemory(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	events := func(tx *Tx) error {
		_, err := Events.All(tx)
		return err
	}
	if err := s.Read(ctx, func(*Tx) error { return s.Read(ctx, events) }); err != nil { // two readers at once
		t.Fatal(err)
	}
	if err := s.Write(ctx, func(tx *Tx) error { return errors.Join(tx.Touch(), events(tx)) }); err != nil {
		t.Fatal(err)
	}
	before := cached(t, s.writer)
	if idle := s.reader.Stats().Idle; idle != 2 {
		t.Errorf("%d readers are idle; want 2", idle)
	}
	if err := s.ReleaseMemory(ctx); err != nil {
		t.Fatal(err)
	}
	if idle := s.reader.Stats().Idle; idle != 1 {
		t.Errorf("%d readers are idle; want one", idle)
	}
	if after := cached(t, s.writer); after > before/2 {
		t.Errorf("the writer holds %d bytes of pages; %d before", after, before)
	}
	if err := errors.Join(s.Read(ctx, events), s.Write(ctx, func(tx *Tx) error { return tx.Touch() })); err != nil {
		t.Error(err)
	}
	if idle := s.reader.Stats().Idle; idle != 1 {
		t.Errorf("%d readers are idle; want the one that read", idle)
	}
}

// cached is how many bytes the pages of a pool's connection take.
func cached(t *testing.T, db *sql.DB) (bytes int) {
	t.Helper()
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Raw(func(driver any) (err error) {
		bytes, _, err = driver.(*conn).driverConn.(sqlite.DBStatus).Status(sqlite.DBStatusCacheUsed, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
