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

func (tx *Tx) use(table, count, condition, org, space string) ([]Use, error) {
	var args []any
	if org != "" {
		condition, args = condition+" AND a.space_guid IN (SELECT guid FROM spaces WHERE org_guid = ?)", append(args, org)
	}
	if space != "" {
		condition, args = condition+" AND a.space_guid = ?", append(args, space)
	}
	rows, err := tx.sql.QueryContext(tx.ctx, "SELECT "+count+", x.memory_mb, x.log_rate_limit FROM apps a JOIN "+table+" x ON x.app_guid = a.guid WHERE "+
		condition+" GROUP BY x.memory_mb, x.log_rate_limit", args...)
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
