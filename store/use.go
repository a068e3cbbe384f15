package store

// Use is what instances of one size use.
type Use struct {
	Instances int
	MemoryMB  int   // of each
	LogRate   int64 // of each, bytes per second; -1: without limit
}

// ProcessUse gives what started processes use in an org and a space; "" is any. awake
// leaves out those that sleep.
func (tx *Tx) ProcessUse(org, space string, awake bool) ([]Use, error) {
	condition := "a.state = 'STARTED'"
	if awake {
		condition += " AND NOT EXISTS (SELECT 1 FROM process_sleeps s WHERE s.process_guid = x.guid AND s.instances = x.instances)"
	}
	return tx.use("processes", "sum(x.instances)", condition, org, space)
}

// TaskUse gives what tasks use that are pending or run, in an org and a space;
// "" is any.
func (tx *Tx) TaskUse(org, space string) ([]Use, error) {
	return tx.use("tasks", "count(*)", "x.state IN ('PENDING', 'RUNNING')", org, space)
}

// RouteUse gives how many routes there are in an org and a space, and how many of them
// have a port; "" is any.
func (tx *Tx) RouteUse(org, space string) (routes, ports int, err error) {
	condition, args := within("space_guid", org, space)
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT coalesce(sum(routes), 0), coalesce(sum(ports), 0) FROM space_routes WHERE "+condition, args...).Scan(&routes, &ports)
	return routes, ports, err
}

// within is the condition that a column names a space which is that one and in the
// org; "" is any.
func within(column, org, space string) (condition string, args []any) {
	condition = "true"
	if org != "" {
		condition, args = condition+" AND "+column+" IN (SELECT guid FROM spaces WHERE org_guid = ?)", append(args, org)
	}
	if space != "" {
		condition, args = condition+" AND "+column+" = ?", append(args, space)
	}
	return condition, args
}

func (tx *Tx) use(table, count, condition, org, space string) ([]Use, error) {
	area, args := within("a.space_guid", org, space)
	rows, err := tx.sql.QueryContext(tx.ctx, "SELECT "+count+", x.memory_mb, x.log_rate_limit FROM apps a JOIN "+table+" x ON x.app_guid = a.guid WHERE "+
		condition+" AND "+area+" GROUP BY x.memory_mb, x.log_rate_limit", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Use
	for rows.Next() {
		var u Use
		if err := rows.Scan(&u.Instances, &u.MemoryMB, &u.LogRate); err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, rows.Err()
}
