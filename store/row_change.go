package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// rowChange is one row that a transaction wrote: by a statement, by a trigger, or
// by a foreign key's ON DELETE. Its values are those of the row's first columns,
// as many as dependencies compare.
type rowChange struct {
	table    string
	old, new []any    // nil: there was no row before, or there is none after
	many     bool     // stands for any number of rows, of which no values are known
	ids      [2]int64 // of the row before and after
}

// maxRowChanges is how many changed rows of one table a transaction tells apart.
const maxRowChanges = 256

// changeLog is what one transaction changed.
type changeLog struct {
	tables map[string]int // changed rows by table
	rows   []rowChange
}

func (l *changeLog) add(c rowChange) {
	if l.tables == nil {
		l.tables = map[string]int{}
	}
	l.tables[c.table]++
	switch n := l.tables[c.table]; {
	case n < maxRowChanges:
		l.rows = append(l.rows, c)
	case n == maxRowChanges:
		l.rows = append(l.rows, rowChange{table: c.table, many: true})
	}
}

// hooked opens connections that report each row before it is written. SQLite's
// update hook would miss what goes by a foreign key or by DELETE without WHERE;
// its preupdate hook reports those too.
type hooked struct {
	driver.Connector
	s *Store
}

func (h hooked) Connect(c context.Context) (driver.Conn, error) {
	conn, err := h.Connector.Connect(c)
	if err != nil {
		return nil, err
	}
	conn.(sqlite.HookRegisterer).RegisterPreUpdateHook(h.s.onRow)
	return conn, nil
}

// onRow notes a row that the writing transaction is about to write.
func (s *Store) onRow(d sqlite.SQLitePreUpdateData) {
	if s.writing == nil { // a migration
		return
	}
	c := rowChange{table: d.TableName, ids: [2]int64{d.OldRowID, d.NewRowID}}
	n := s.compared.of(d.TableName)
	if d.Op != sqlite3.SQLITE_INSERT {
		c.old = make([]any, n)
		c.many = c.many || d.Old(c.old...) != nil
	}
	if d.Op != sqlite3.SQLITE_DELETE {
		c.new = make([]any, n)
		c.many = c.many || d.New(c.new...) != nil
	}
	s.writing.log.add(c)
}

// compared is how many of its first columns dependencies compare of each table.
type compared struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *compared) of(table string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[table]
}

func (c *compared) atLeast(table string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[table] = max(c.n[table], n)
}

// openHooked opens a pool whose connections report the rows they write.
func (s *Store) openHooked(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keeper{hooked{c, s}, keptWrites, func() bool { return s.competing() && s.writers.Waiting() == 0 }}), nil
}
