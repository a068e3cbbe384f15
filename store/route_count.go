package store

// RouteGroup is what quotas tell routes apart by.
type RouteGroup struct {
	SpaceGUID string
	Port      bool // it has one
}

// routeCount counts the routes that a transaction adds and removes, be it by a
// foreign key or a trigger.
type routeCount struct {
	added map[RouteGroup]int // less those removed
	lost  bool               // a row could not be read: the numbers are wrong
}

// routeColumns are the places of what RouteGroup is made of in a row.
type routeColumns struct{ space, port int }

// countRoutes makes changes of routes report the columns by which they are counted.
func (s *Store) countRoutes() {
	columns := s.schema.columns[Routes.name]
	s.routes = routeColumns{space: columns["space_guid"], port: columns["port"]}
	s.compared.atLeast(Routes.name, max(s.routes.space, s.routes.port)+1)
}

func (n *routeCount) change(at routeColumns, c rowChange) {
	if c.table != Routes.name {
		return
	}
	n.lost = n.lost || c.many
	n.add(at, c.old, -1)
	n.add(at, c.new, 1)
}

// add adds a row, if there is one, so many times.
func (n *routeCount) add(at routeColumns, row []any, times int) {
	if row == nil || n.lost {
		return
	}
	space, isText := row[at.space].(string)
	port, isInt := row[at.port].(int64)
	if !isText || !isInt {
		n.lost = true
		return
	}
	if n.added == nil {
		n.added = map[RouteGroup]int{}
	}
	n.added[RouteGroup{space, port > 0}] += times
}

// RoutesAdded is how many routes more than at its begin the transaction sees, by
// group. It reads no rows. It reports false when it does not know. The map is the
// transaction's: do not write to it.
func (tx *Tx) RoutesAdded() (map[RouteGroup]int, bool) { return tx.routes.added, !tx.routes.lost }

// Written is how many rows of tables the transaction has written.
func (tx *Tx) Written(tables ...string) (n int) {
	for _, t := range tables {
		n += tx.log.tables[t]
	}
	return n
}
