package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/guid"
	"cupola/store/cf"
)

// Table is the rows of one noun. Its methods take the transaction they act in. A
// noun with further queries has a type for them in its file, which embeds its Table.
type Table[T any] struct {
	name     string
	singular string                  // for messages: "App not found"
	columns  string                  // comma-separated, guid first
	fields   func(*T, *sealer) []any // one for each column: a pointer, or a column wrapper
	resource func(*T) *cf.Resource
	filters  map[string]string                          // filter → column, or condition with "?" for the list of values
	orders   map[string]string                          // order → column
	visible  string                                     // condition over :orgs and :spaces that reads no other row of the table; "": everyone sees every row
	accepts  map[string]func(values []string) predicate // filter that is not a column → what it asks of the row alone
	labelled bool                                       // has a column labels
}

// Name is the table's name, as Tx.Written takes it.
func (t *Table[T]) Name() string { return t.name }

// Filters are the names of the filters that List takes.
func (t *Table[T]) Filters() []string {
	var names []string
	for n := range t.filters {
		names = append(names, n)
	}
	return names
}

// Orders are the names of the orders that List takes, sorted.
func (t *Table[T]) Orders() []string {
	return slices.Sorted(maps.Keys(t.orders))
}

// Labelled reports whether rows can be chosen by label.
func (t *Table[T]) Labelled() bool { return t.labelled }

// Get returns the row, or a cf.ResourceNotFound in Cloud Controller's words.
func (t *Table[T]) Get(tx *Tx, guid string) (*T, error) {
	return t.First(tx, Query{Where: map[string][]string{"guids": {guid}}})
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
	return t.First(tx, Query{Where: map[string][]string{"guids": {guid}}, Visible: s})
}

// First returns the first row of the query, or cf.ResourceNotFound.
func (t *Table[T]) First(tx *Tx, q Query) (*T, error) {
	q.Page, q.PerPage = 1, 1
	left := len(tx.left)
	rows, _, err := t.list(tx, q, false)
	if err == nil && len(rows) == 0 && len(tx.left) > left {
		err = tx.left[left] // there is one
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, t.NotFound()
	}
	return rows[0], nil
}

// NotFound is the error that there is no such row.
func (t *Table[T]) NotFound() error {
	return cf.Errorf(cf.ResourceNotFound, "%s not found", t.singular)
}

// Some returns the first n rows of the query.
func (t *Table[T]) Some(tx *Tx, q Query, n int) ([]*T, error) {
	q.Page, q.PerPage = 1, n
	return t.Matching(tx, q)
}

// By returns all rows whose filter has one of the values, in the order they
// were made.
func (t *Table[T]) By(tx *Tx, filter string, values ...string) ([]*T, error) {
	if column := t.filters[filter]; len(values) == 0 && column != "" && !strings.Contains(column, "?") {
		return nil, nil
	}
	return t.Matching(tx, Query{Where: map[string][]string{filter: values}})
}

// Where returns all rows that every filter accepts, in the order they were made.
func (t *Table[T]) Where(tx *Tx, where map[string][]string) ([]*T, error) {
	return t.Matching(tx, Query{Where: where})
}

// All returns all rows in the order they were made.
func (t *Table[T]) All(tx *Tx) ([]*T, error) {
	return t.Matching(tx, Query{})
}

// GUIDs are those of all rows, also of damaged ones.
func (t *Table[T]) GUIDs(tx *Tx) ([]string, error) { return tx.texts("SELECT guid FROM " + t.name) }

// Matching returns the rows of a query. Unlike List it does not count those of other pages.
func (t *Table[T]) Matching(tx *Tx, q Query) ([]*T, error) {
	rows, _, err := t.list(tx, q, false)
	return rows, err
}

// List returns a page of rows, and how many rows there are on all pages.
func (t *Table[T]) List(tx *Tx, q Query) (rows []*T, total int, err error) {
	return t.list(tx, q, true)
}

// Count tells how many rows the query has on all its pages.
func (t *Table[T]) Count(tx *Tx, q Query) (int, error) {
	c, err := t.condition(q)
	if err != nil {
		return 0, err
	}
	return t.count(tx, c)
}

// predicates are what a query's filters ask of a row alone. Other filters may look
// at other rows of the table: then there are none.
func (t *Table[T]) predicates(tx *Tx, q Query) (all predicates) {
	if tx.sql.on == nil {
		return nil
	}
	columns := tx.sql.on.schema.columns[t.name]
	for filter, values := range q.Where {
		var p predicate
		switch expr := t.filters[filter]; {
		case t.accepts[filter] != nil:
			p = t.accepts[filter](values)
		case strings.Contains(expr, "?"):
			return nil
		default:
			p = oneOf(strings.TrimPrefix(expr, t.name+"."), values)
		}
		if at, is := columns[p.column]; is {
			tx.compared.atLeast(t.name, at+1)
			all = append(all, p)
		}
	}
	return all
}

func (t *Table[T]) count(tx *Tx, c *condition) (n int, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT count(*) FROM "+t.name+c.where(), c.args...).Scan(&n)
	return n, err
}

func (t *Table[T]) condition(q Query) (*condition, error) {
	c := &condition{}
	if err := c.filter(t.filters, q.Where); err != nil {
		return nil, err
	}
	for _, l := range q.Labels {
		c.label(t.name, l)
	}
	for _, r := range q.Times {
		c.time(t.name, r)
	}
	c.visible(t.visible, q.Visible)
	return c, nil
}

func (t *Table[T]) list(tx *Tx, q Query, counted bool) ([]*T, int, error) {
	c, err := t.condition(q)
	if err != nil {
		return nil, 0, err
	}
	total := 0
	if counted {
		if total, err = t.count(tx, c); err != nil {
			return nil, 0, err
		}
	}
	text := "SELECT " + t.columns + " FROM " + t.name + c.where() + t.order(q)
	args := c.args
	if q.Page > 0 {
		text += limit(q.PerPage) + " OFFSET ?"
		args = append(args, (q.Page-1)*q.PerPage)
	}
	rows, err := t.read(tx, t.predicates(tx, q), text, args...)
	return rows, total, err
}

// limit ends a SELECT after n rows. It is not a parameter: with one, SQLite compiles the
// statement again for each value, to find the best plan.
func limit(n int) string { return " LIMIT " + strconv.Itoa(n) }

func (t *Table[T]) order(q Query) string {
	dir := ""
	if q.Desc {
		dir = " DESC"
	}
	if column := t.orders[q.Order]; column != "" {
		return " ORDER BY " + column + dir + ", id" + dir
	}
	return " ORDER BY id" + dir
}

// query runs a SELECT of the table's columns.
func (t *Table[T]) query(tx *Tx, text string, args ...any) ([]*T, error) {
	return t.read(tx, nil, text, args...)
}

// read is query of rows that meet predicates.
func (t *Table[T]) read(tx *Tx, all predicates, text string, args ...any) (list []*T, err error) {
	rows, err := tx.sql.query(tx.ctx, t.name, all, text, args)
	if err != nil {
		return nil, err
	}
	err = t.each(tx, rows, nil, func(v *T, d *damage) {
		if d != nil {
			tx.leaveOut(d)
		} else {
			list = append(list, v)
		}
	})
	return list, err
}

// each gives take the rows of a query of the table's columns and further ones, which go
// to more. It gives damage for a row that cannot be decoded and may be left out.
func (t *Table[T]) each(tx *Tx, rows *rows, more []any, take func(*T, *damage)) error {
	defer rows.Close()
	for rows.Next() {
		v := new(T)
		err := rows.Scan(append(t.fields(v, tx.seal), more...)...)
		switch {
		case err == nil:
			take(v, nil)
		case !tx.lenient, tx.ctx.Err() != nil:
			return fmt.Errorf("read %s: %w", t.name, err)
		default:
			part := new(T)
			key := rows.salvage(append(t.fields(part, tx.seal), more...))
			take(nil, &damage{t.name, key, part, err})
		}
	}
	return rows.Err()
}

// change runs an UPDATE or DELETE and returns the rows that it wrote, or
// removed.
func (t *Table[T]) change(tx *Tx, text string, args ...any) ([]*T, error) {
	rows, err := t.query(tx, text+" RETURNING "+t.columns, args...)
	return rows, convert(err)
}

// Insert adds a row. An empty GUID is filled in, and so is CreatedAt.
func (t *Table[T]) Insert(tx *Tx, v *T) error {
	if r := t.resource(v); r != nil {
		if r.GUID == "" {
			r.GUID = guid.New()
		}
		if r.CreatedAt.IsZero() {
			r.CreatedAt = tx.Now
		}
	}
	marks := strings.Repeat(", ?", strings.Count(t.columns, ",")+1)[2:]
	_, err := tx.exec("INSERT INTO "+t.name+" ("+t.columns+") VALUES ("+marks+")", t.fields(v, tx.seal)...)
	return convert(err)
}

// Update writes the row whose GUID v has, and sets UpdatedAt.
func (t *Table[T]) Update(tx *Tx, v *T) error {
	if r := t.resource(v); r != nil {
		r.UpdatedAt = tx.Now
	}
	fields := t.fields(v, tx.seal)
	names := strings.Split(t.columns, ", ")
	set := strings.Join(names[1:], " = ?, ") + " = ?"
	n, err := tx.exec("UPDATE "+t.name+" SET "+set+" WHERE "+names[0]+" = ?", append(fields[1:], fields[0])...)
	if err == nil && n == 0 {
		return t.NotFound()
	}
	return convert(err)
}

// Delete removes the row with the GUID and what belongs to it; none is no
// error.
func (t *Table[T]) Delete(tx *Tx, guid string) error {
	key, _, _ := strings.Cut(t.columns, ",")
	_, err := tx.exec("DELETE FROM "+t.name+" WHERE "+key+" = ?", guid)
	return err
}

// DeleteBy removes all rows whose filter has the value, and what belongs to them.
func (t *Table[T]) DeleteBy(tx *Tx, filter, value string) error {
	c, err := t.condition(Query{Where: map[string][]string{filter: {value}}})
	if err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM "+t.name+c.where(), c.args...)
	return err
}

// Put inserts the row, or updates it where there is one.
func (t *Table[T]) Put(tx *Tx, v *T) error {
	err := t.Update(tx, v)
	if IsNotFound(err) {
		return t.Insert(tx, v)
	}
	return err
}
