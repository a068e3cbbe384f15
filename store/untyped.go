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

// table is the part of a Table that is the same for all types. A row is a *T in an any. Table documents the methods.
type table struct {
	name     string
	singular string // for messages: "App not found"
	columns  string // comma-separated, guid first
	fields   fields
	resource func(row any) *cf.Resource
	filters  map[string]string                          // filter → column, or condition with "?" for the list of values
	orders   map[string]string                          // order → column
	visible  string                                     // condition over :orgs and :spaces that reads no other row of the table; "": everyone sees every row
	accepts  map[string]func(values []string) predicate // filter that is not a column → what it asks of the row alone
	labelled bool                                       // has a column labels
}

// fields are where the columns of a row go.
type fields struct {
	row func() any                        // an empty one
	of  func(row any, seal *sealer) []any // one for each column: a pointer, or a column wrapper
}

func fieldsOf[T any](of func(*T, *sealer) []any) fields {
	return fields{
		row: func() any { return new(T) },
		of:  func(row any, seal *sealer) []any { return of(row.(*T), seal) },
	}
}

func resourceOf[T any](of func(*T) *cf.Resource) func(any) *cf.Resource {
	return func(row any) *cf.Resource { return of(row.(*T)) }
}

func (t *table) filterNames() []string {
	var names []string
	for n := range t.filters {
		names = append(names, n)
	}
	return names
}

func (t *table) orderNames() []string {
	return slices.Sorted(maps.Keys(t.orders))
}

func (t *table) notFound() error {
	return cf.Errorf(cf.ResourceNotFound, "%s not found", t.singular)
}

// visibleRow is the row of a GUID, in a scope.
func (t *table) visibleRow(tx *Tx, guid string, s *Scope) (any, error) {
	return t.firstRow(tx, Query{Where: map[string][]string{"guids": {guid}}, Visible: s})
}

func (t *table) firstRow(tx *Tx, q Query) (any, error) {
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
		return nil, t.notFound()
	}
	return rows[0], nil
}

func (t *table) rowsBy(tx *Tx, filter string, values []string) ([]any, error) {
	if column := t.filters[filter]; len(values) == 0 && column != "" && !strings.Contains(column, "?") {
		return nil, nil
	}
	return t.matching(tx, Query{Where: map[string][]string{filter: values}})
}

func (t *table) matching(tx *Tx, q Query) ([]any, error) {
	rows, _, err := t.list(tx, q, false)
	return rows, err
}

func (t *table) guids(tx *Tx) ([]string, error) { return tx.texts("SELECT guid FROM " + t.name) }

func (t *table) countOf(tx *Tx, q Query) (int, error) {
	c, err := t.condition(q)
	if err != nil {
		return 0, err
	}
	return t.count(tx, c)
}

// predicates are what a query's filters ask of a row alone. Other filters may look
// at other rows of the table: then there are none.
func (t *table) predicates(tx *Tx, q Query) (all predicates) {
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

func (t *table) count(tx *Tx, c *condition) (n int, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT count(*) FROM "+t.name+c.where(), c.args...).Scan(&n)
	return n, err
}

func (t *table) condition(q Query) (*condition, error) {
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

func (t *table) list(tx *Tx, q Query, counted bool) ([]any, int, error) {
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

func (t *table) order(q Query) string {
	dir := ""
	if q.Desc {
		dir = " DESC"
	}
	if column := t.orders[q.Order]; column != "" {
		return " ORDER BY " + column + dir + ", id" + dir
	}
	return " ORDER BY id" + dir
}

// read runs a SELECT of the table's columns, of rows that meet predicates.
func (t *table) read(tx *Tx, all predicates, text string, args ...any) (list []any, err error) {
	rows, err := tx.sql.query(tx.ctx, t.name, all, text, args)
	if err != nil {
		return nil, err
	}
	err = t.each(tx, rows, nil, func(v any, d *damage) {
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
func (t *table) each(tx *Tx, rows *rows, more []any, take func(any, *damage)) error {
	defer rows.Close()
	for rows.Next() {
		v := t.fields.row()
		err := rows.Scan(append(t.fields.of(v, tx.seal), more...)...)
		switch {
		case err == nil:
			take(v, nil)
		case !tx.lenient, tx.ctx.Err() != nil:
			return fmt.Errorf("read %s: %w", t.name, err)
		default:
			part := t.fields.row()
			key := rows.salvage(append(t.fields.of(part, tx.seal), more...))
			take(nil, &damage{t.name, key, part, err})
		}
	}
	return rows.Err()
}

func (t *table) insert(tx *Tx, v any) error {
	if r := t.resource(v); r != nil {
		if r.GUID == "" {
			r.GUID = guid.New()
		}
		if r.CreatedAt.IsZero() {
			r.CreatedAt = tx.Now
		}
	}
	marks := strings.Repeat(", ?", strings.Count(t.columns, ",")+1)[2:]
	_, err := tx.exec("INSERT INTO "+t.name+" ("+t.columns+") VALUES ("+marks+")", t.fields.of(v, tx.seal)...)
	return convert(err)
}

func (t *table) update(tx *Tx, v any) error {
	if r := t.resource(v); r != nil {
		r.UpdatedAt = tx.Now
	}
	fields := t.fields.of(v, tx.seal)
	names := strings.Split(t.columns, ", ")
	set := strings.Join(names[1:], " = ?, ") + " = ?"
	n, err := tx.exec("UPDATE "+t.name+" SET "+set+" WHERE "+names[0]+" = ?", append(fields[1:], fields[0])...)
	if err == nil && n == 0 {
		return t.notFound()
	}
	return convert(err)
}

func (t *table) put(tx *Tx, v any) error {
	err := t.update(tx, v)
	if IsNotFound(err) {
		return t.insert(tx, v)
	}
	return err
}

func (t *table) remove(tx *Tx, guid string) error {
	key, _, _ := strings.Cut(t.columns, ",")
	_, err := tx.exec("DELETE FROM "+t.name+" WHERE "+key+" = ?", guid)
	return err
}

func (t *table) removeBy(tx *Tx, filter, value string) error {
	c, err := t.condition(Query{Where: map[string][]string{filter: {value}}})
	if err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM "+t.name+c.where(), c.args...)
	return err
}
