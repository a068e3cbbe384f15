package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"
)

// dependencies are the rows that a function's result depends on.
type dependencies struct {
	schema *schema
	tables map[string]*tableReads
}

// tableReads are the rows of one table.
type tableReads struct {
	whole  bool
	values map[string]map[string]bool // of a column; rows with one of them
	both   []predicates               // rows that one of them accepts
}

// predicates are what a row must meet, all of them, to be in a query's result.
type predicates []predicate

// predicate accepts a column's values.
type predicate struct {
	column string
	values map[string]bool // lower case, since columns may be NOCASE
	accept func(any) bool  // instead of values
}

// oneOf accepts values of a column.
func oneOf(column string, values []string) predicate {
	p := predicate{column: column, values: make(map[string]bool, len(values))}
	for _, v := range values {
		p.values[strings.ToLower(v)] = true
	}
	return p
}

// maxPredicates is how many predicates of one table are noted one by one.
const maxPredicates = 64

func newDependencies(s *schema) *dependencies {
	return &dependencies{schema: s, tables: map[string]*tableReads{}}
}

func (d *dependencies) of(table string) *tableReads {
	t := d.tables[table]
	if t == nil {
		t = &tableReads{values: map[string]map[string]bool{}}
		d.tables[table] = t
	}
	return t
}

// add notes that rows of a table were read which meet all; all rows, when there
// are not predicates.
func (d *dependencies) add(table string, all predicates) {
	t := d.of(table)
	switch {
	case t.whole:
	case len(all) == 0 || len(t.both) == maxPredicates:
		t.whole, t.values, t.both = true, nil, nil
	case len(all) == 1 && all[0].accept == nil:
		c := all[0]
		if t.values[c.column] == nil {
			t.values[c.column] = map[string]bool{}
		}
		for v := range c.values {
			t.values[c.column][v] = true
		}
	default:
		t.both = append(t.both, all)
	}
}

// merge adds what another has.
func (d *dependencies) merge(other *dependencies) {
	for table, t := range other.tables {
		if t.whole {
			d.add(table, nil)
		}
		for column, values := range t.values {
			d.add(table, predicates{{column: column, values: values}})
		}
		for _, all := range t.both {
			d.add(table, all)
		}
	}
}

// changedBy reports whether a change may change what was read.
func (d *dependencies) changedBy(c rowChange) bool {
	t := d.tables[c.table]
	if t == nil {
		return false
	}
	return t.whole || c.many || c.old != nil && t.reads(d.schema, c.table, c.old) || c.new != nil && t.reads(d.schema, c.table, c.new)
}

// reads reports whether a row may be among those that were read.
func (t *tableReads) reads(s *schema, table string, row []any) bool {
	for column, values := range t.values {
		if (predicate{column: column, values: values}).met(s, table, row) {
			return true
		}
	}
	for _, all := range t.both {
		if all.met(s, table, row) {
			return true
		}
	}
	return false
}

func (all predicates) met(s *schema, table string, row []any) bool {
	for _, c := range all {
		if !c.met(s, table, row) {
			return false
		}
	}
	return true
}

// met reports whether a row may meet the condition: also when the value was not
// kept, or is not text.
func (c predicate) met(s *schema, table string, row []any) bool {
	n := s.columns[table][c.column]
	if n >= len(row) {
		return true
	}
	if c.accept != nil {
		return c.accept(row[n])
	}
	switch v := row[n].(type) {
	case nil: // is in no list
		return false
	case string:
		return c.values[strings.ToLower(v)]
	}
	return true
}

// schema is what dependencies need to know of the database.
type schema struct {
	columns map[string]map[string]int // table → column → its place in a row
	roots   map[int64]string          // page on which a table or an index begins → table
	texts   sync.Map                  // statement → []string, the tables it reads
}

func readSchema(db *sql.DB) (*schema, error) {
	s := &schema{columns: map[string]map[string]int{}, roots: map[int64]string{}}
	pages, err := db.Query("SELECT rootpage, tbl_name FROM sqlite_schema WHERE rootpage > 0")
	if err != nil {
		return nil, err
	}
	defer pages.Close()
	for pages.Next() {
		var page int64
		var table string
		if err := pages.Scan(&page, &table); err != nil {
			return nil, err
		}
		s.roots[page] = table
	}
	if err := pages.Err(); err != nil {
		return nil, err
	}
	columns, err := db.Query("SELECT m.name, c.name, c.cid FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'")
	if err != nil {
		return nil, err
	}
	defer columns.Close()
	for columns.Next() {
		var table, column string
		var at int
		if err := columns.Scan(&table, &column, &at); err != nil {
			return nil, err
		}
		if s.columns[table] == nil {
			s.columns[table] = map[string]int{}
		}
		s.columns[table][column] = at
	}
	return s, columns.Err()
}

// tablesOf are the tables that a statement reads, as SQLite's own program for it
// says: it is asked once for each text.
func (s *schema) tablesOf(ctx context.Context, tx *transaction, text string, args []any) ([]string, error) {
	if known, ok := s.texts.Load(text); ok {
		return known.([]string), nil
	}
	rows, err := tx.QueryContext(ctx, "EXPLAIN "+text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	seen := map[string]bool{}
	tables := []string{}
	for rows.Next() {
		var opcode string
		var page int64
		var skip any
		if err := rows.Scan(&skip, &opcode, &skip, &page, &skip, &skip, &skip, &skip); err != nil {
			return nil, err
		}
		if table := s.roots[page]; (opcode == "OpenRead" || opcode == "ReopenIdx") && table != "" && !seen[table] {
			seen[table] = true
			tables = append(tables, table)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	s.texts.Store(text, tables)
	return tables, nil
}
