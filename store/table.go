package store

// Table is the rows of one noun. Its methods take the transaction they act in. A
// noun with further queries has a type for them in its file, which embeds its Table.
//
// Go compiles what has a type parameter once for each type, in each package that uses it. So a Table's methods only name the type,
// and call those of table, which are compiled once.
type Table[T any] struct{ table table }

// typed are rows as what they are.
func typed[T any](rows []any, err error) ([]*T, error) {
	if len(rows) == 0 {
		return nil, err
	}
	list := make([]*T, len(rows))
	for n, row := range rows {
		list[n] = row.(*T)
	}
	return list, err
}

// Name is the table's name, as Tx.Written takes it.
func (t *Table[T]) Name() string { return t.table.name }

// Filters are the names of the filters that List takes.
func (t *Table[T]) Filters() []string { return t.table.filterNames() }

// Orders are the names of the orders that List takes, sorted.
func (t *Table[T]) Orders() []string { return t.table.orderNames() }

// Labelled reports whether rows can be chosen by label.
func (t *Table[T]) Labelled() bool { return t.table.labelled }

// query runs a SELECT of the table's columns.
func query[T any](tx *Tx, t *Table[T], text string, args ...any) ([]*T, error) {
	return typed[T](t.table.read(tx, nil, text, args...))
}

// change runs an UPDATE or DELETE and returns the rows that it wrote, or
// removed.
func change[T any](tx *Tx, t *Table[T], text string, args ...any) ([]*T, error) {
	rows, err := query(tx, t, text+" RETURNING "+t.table.columns, args...)
	return rows, convert(err)
}

// Get returns the row, or a cf.ResourceNotFound in Cloud Controller's words.
func (t *Table[T]) Get(tx *Tx, guid string) (*T, error) {
	return t.Visible(tx, guid, nil)
}

// Find is Get, but for nil where there is no such row.
func (t *Table[T]) Find(tx *Tx, guid string) (*T, error) {
	row, err := t.Get(tx, guid)
	if IsNotFound(err) {
		return nil, nil
	}
	return row, err
}

// Visible is Get for one who may see only a scope's rows (nil: all): a row
// outside it is not found.
func (t *Table[T]) Visible(tx *Tx, guid string, s *Scope) (*T, error) {
	row, err := t.table.visibleRow(tx, guid, s)
	v, _ := row.(*T)
	return v, err
}

// First returns the first row of the query, or cf.ResourceNotFound.
func (t *Table[T]) First(tx *Tx, q Query) (*T, error) {
	row, err := t.table.firstRow(tx, q)
	v, _ := row.(*T)
	return v, err
}

// NotFound is the error that there is no such row.
func (t *Table[T]) NotFound() error { return t.table.notFound() }

// Some returns the first n rows of the query.
func (t *Table[T]) Some(tx *Tx, q Query, n int) ([]*T, error) {
	q.Page, q.PerPage = 1, n
	return t.Matching(tx, q)
}

// By returns all rows whose filter has one of the values, in the order they
// were made.
func (t *Table[T]) By(tx *Tx, filter string, values ...string) ([]*T, error) {
	return typed[T](t.table.rowsBy(tx, filter, values))
}

// Where returns all rows that every filter accepts, in the order they were made.
func (t *Table[T]) Where(tx *Tx, where map[string][]string) ([]*T, error) {
	return t.Matching(tx, Query{Where: where})
}

// All returns all rows in the order they were made.
func (t *Table[T]) All(tx *Tx) ([]*T, error) { return t.Matching(tx, Query{}) }

// Matching returns the rows of a query. Unlike List it does not count those of other pages.
func (t *Table[T]) Matching(tx *Tx, q Query) ([]*T, error) { return typed[T](t.table.matching(tx, q)) }

// List returns a page of rows, and how many rows there are on all pages.
func (t *Table[T]) List(tx *Tx, q Query) (rows []*T, total int, err error) {
	all, total, err := t.table.list(tx, q, true)
	rows, err = typed[T](all, err)
	return rows, total, err
}

// GUIDs are those of all rows, also of damaged ones.
func (t *Table[T]) GUIDs(tx *Tx) ([]string, error) { return t.table.guids(tx) }

// Count tells how many rows the query has on all its pages.
func (t *Table[T]) Count(tx *Tx, q Query) (int, error) { return t.table.countOf(tx, q) }

// Kept is All, of rows that the Reads of one function keep: between two of them only those
// that changed are read. What the rows point to is shared with later Reads: it must not be
// changed.
func (t *Table[T]) Kept(tx *Tx) ([]*T, error) { return typed[T](t.table.kept(tx)) }

// KeptBy is By, of rows that are kept as those of Kept are. The filter must be a column
// whose values differ in each byte. Rows of values that a Read does not name are not kept
// any longer, so a function calls it once for a filter.
func (t *Table[T]) KeptBy(tx *Tx, filter string, values ...string) ([]*T, error) {
	return typed[T](t.table.keptBy(tx, filter, values))
}

// Insert adds a row. An empty GUID is filled in, and so is CreatedAt.
func (t *Table[T]) Insert(tx *Tx, v *T) error { return t.table.insert(tx, v) }

// Update writes the row whose GUID v has, and sets UpdatedAt.
func (t *Table[T]) Update(tx *Tx, v *T) error { return t.table.update(tx, v) }

// Put inserts the row, or updates it where there is one.
func (t *Table[T]) Put(tx *Tx, v *T) error { return t.table.put(tx, v) }

// Delete removes the row with the GUID and what belongs to it; none is no
// error.
func (t *Table[T]) Delete(tx *Tx, guid string) error { return t.table.remove(tx, guid) }

// DeleteBy removes all rows whose filter has the value, and what belongs to them.
func (t *Table[T]) DeleteBy(tx *Tx, filter, value string) error {
	return t.table.removeBy(tx, filter, value)
}

// Damaged are the rows that lists of this transaction left out because they
// cannot be decoded, each with what could be. Only Reads.Read leaves rows out: every
// other read fails at the first.
func (t *Table[T]) Damaged(tx *Tx) (rows []*T) {
	for _, d := range tx.left {
		if v, ok := d.row.(*T); ok && d.table == t.table.name {
			rows = append(rows, v)
		}
	}
	return rows
}

// LeaveOut reports a row of t whose columns can be read, but not what they hold. It
// returns err where no row is left out.
func (t *Table[T]) LeaveOut(tx *Tx, v *T, key string, err error) error {
	return t.table.leaveOut(tx, v, key, err)
}
