package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A function that is read again and again, of which little changes in between, keeps the
// rows that it names with Kept and KeptBy: the next Read takes from SQLite only those that
// commits changed. What a Read sees is one moment of the database all the same. A commit
// is visible at some time between its begin and its end, so before it becomes so, its rows
// are noted as changed, and they stay noted until a Read began after its end.

// keptSets are what one Reads keeps.
type keptSets struct {
	sets map[keptKey]*keptSet // of the Reads' goroutine

	mu      sync.Mutex
	changes map[string][]*changedRows // by table
}

// keptKey is a table, which may have its name in common with another one, and a column of it.
type keptKey struct {
	table  *table
	column string
}

// keptTx is what a transaction of a Reads needs of them.
type keptTx struct {
	sets  *keptSets
	feed  *feed
	seen  uint64 // the last commit that ended before the transaction began
	fixed bool   // the transaction's moment is
}

// keptSet are rows of a table by the value of a column.
type keptSet struct {
	changed *changedRows
	known   map[string]bool // values of which all rows are here
	rows    map[int64]keptRow
}

type keptRow struct {
	id     int64
	value  string
	row    any     // nil: damage
	damage *damage // why it is left out
}

// changedRows are those of a table that changed since they were kept.
type changedRows struct {
	ids map[int64]uint64 // the last commit that changed a row
	all uint64           // the last commit whose rows are unknown
}

// maxChanged is how many changed rows of a set are kept one by one.
const maxChanged = 4 * maxRowChanges

func (t *table) kept(tx *Tx) ([]any, error) {
	if tx.kept == nil {
		return t.matching(tx, Query{})
	}
	tx.depend(t.name, nil)
	return t.keep(tx, "''", []string{""})
}

func (t *table) keptBy(tx *Tx, filter string, values []string) ([]any, error) {
	column := t.filters[filter]
	if tx.kept == nil || column == "" || strings.ContainsAny(column, "?(") {
		return t.rowsBy(tx, filter, values)
	}
	tx.depend(t.name, t.predicates(tx, Query{Where: map[string][]string{filter: values}}))
	return t.keep(tx, column, values)
}

// depend notes that rows of a table were read which meet all.
func (tx *Tx) depend(table string, all predicates) {
	if tx.sql.on != nil && !tx.sql.quiet {
		tx.sql.on.add(table, all)
	}
}

func (t *table) keep(tx *Tx, column string, values []string) (list []any, err error) {
	if err := tx.kept.fix(tx); err != nil {
		return nil, err
	}
	set := tx.kept.setOf(keptKey{t, column})
	err = tx.Unnoted(func() error { return t.refresh(tx, set, column, values) })
	if err != nil {
		tx.kept.sets.drop(keptKey{t, column}, set.changed)
		return nil, err
	}
	for _, r := range set.sorted() {
		if r.damage != nil {
			tx.leaveOut(r.damage)
		} else {
			list = append(list, r.row)
		}
	}
	return list, nil
}

// fix fixes the transaction's snapshot: a commit that is noted later is not in it.
func (k *keptTx) fix(tx *Tx) error {
	if k.fixed {
		return nil
	}
	k.fixed = true
	var n int
	return tx.sql.tx.QueryRowContext(tx.ctx, "SELECT count(*) FROM (SELECT 1 FROM sqlite_schema LIMIT 1)").Scan(&n)
}

func (k *keptTx) setOf(key keptKey) *keptSet {
	if set := k.sets.sets[key]; set != nil {
		return set
	}
	set := &keptSet{changed: &changedRows{ids: map[int64]uint64{}}, known: map[string]bool{}, rows: map[int64]keptRow{}}
	k.feed.mu.Lock()
	defer k.feed.mu.Unlock()
	set.changed.all = k.feed.begun // what is being committed has not been noted
	k.sets.add(key, set)
	return set
}

// refresh makes a set hold the rows of values as the transaction sees them, and no others.
func (t *table) refresh(tx *Tx, set *keptSet, column string, values []string) error {
	ids, all := tx.kept.sets.changedOf(set.changed)
	if all {
		clear(set.known)
		clear(set.rows)
	}
	for _, id := range ids {
		delete(set.rows, id)
	}
	wanted := map[string]bool{}
	var missing []string
	for _, v := range values {
		if !set.known[v] && !wanted[v] {
			missing = append(missing, v)
		}
		wanted[v] = true
	}
	if len(set.known) > 0 && len(ids) > 0 {
		if err := t.readKept(tx, set, column, "id", ids); err != nil {
			return err
		}
	}
	for _, v := range missing {
		set.known[v] = true
	}
	if len(missing) > 0 {
		if err := t.readKept(tx, set, column, column, missing); err != nil {
			return err
		}
	}
	set.forget(wanted)
	tx.kept.sets.clean(set.changed, tx.kept.seen)
	return nil
}

// readKept reads the rows whose column by has one of the values into a set that knows
// theirs.
func (t *table) readKept(tx *Tx, set *keptSet, column, by string, values any) error {
	list, err := json.Marshal(values)
	if err != nil {
		return err
	}
	rows, err := tx.sql.QueryContext(tx.ctx, "SELECT "+t.columns+", id, ifnull("+column+", '') FROM "+t.name+" WHERE "+by+inList, string(list))
	if err != nil {
		return err
	}
	var r keptRow
	return t.each(tx, rows, []any{&r.id, &r.value}, func(v any, d *damage) {
		if r.row, r.damage = v, d; set.known[r.value] {
			set.rows[r.id] = r
		}
	})
}

// forget drops what is not wanted.
func (s *keptSet) forget(wanted map[string]bool) {
	if len(s.known) == len(wanted) {
		return
	}
	maps.DeleteFunc(s.known, func(value string, _ bool) bool { return !wanted[value] })
	maps.DeleteFunc(s.rows, func(_ int64, r keptRow) bool { return !wanted[r.value] })
}

// sorted are the rows as they were made.
func (s *keptSet) sorted() []keptRow {
	list := make([]keptRow, 0, len(s.rows))
	for _, r := range s.rows {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b keptRow) int { return cmp.Compare(a.id, b.id) })
	return list
}

func (k *keptSets) add(key keptKey, set *keptSet) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sets == nil {
		k.sets, k.changes = map[keptKey]*keptSet{}, map[string][]*changedRows{}
	}
	k.sets[key] = set
	k.changes[key.table.name] = append(k.changes[key.table.name], set.changed)
}

// drop forgets a set that is only partly read.
func (k *keptSets) drop(key keptKey, c *changedRows) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sets, key)
	k.changes[key.table.name] = slices.DeleteFunc(k.changes[key.table.name], func(other *changedRows) bool { return other == c })
}

// changed notes the rows of a commit.
func (k *keptSets) changed(commit uint64, rows []rowChange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range rows {
		for _, c := range k.changes[r.table] {
			if r.many || len(c.ids) >= maxChanged {
				c.all = commit
				clear(c.ids)
				continue
			}
			for _, id := range r.ids {
				c.ids[id] = commit
			}
		}
	}
}

func (k *keptSets) changedOf(c *changedRows) (ids []int64, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(c.ids)), c.all > 0
}

// clean forgets the changes of commits up to one.
func (k *keptSets) clean(c *changedRows, seen uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.all <= seen {
		c.all = 0
	}
	maps.DeleteFunc(c.ids, func(_ int64, commit uint64) bool { return commit <= seen })
}
