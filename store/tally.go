package store

// Tally is how many there are of what operators watch.
type Tally struct {
	Orgs, Spaces, Apps, StartedApps, Routes, Users   int
	RunningTasks, RunningTasksMB, Stagings           int
	ActiveDeployments, WaitingJobs, ServiceInstances int
}

// Tally counts, without reading rows.
func (tx *Tx) Tally() (t Tally, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, `SELECT (SELECT count(*) FROM orgs), (SELECT count(*) FROM spaces), (SELECT count(*) FROM apps),
		(SELECT count(*) FROM apps WHERE state = 'STARTED'), (SELECT count(*) FROM routes), (SELECT count(*) FROM users),
		(SELECT count(*) FROM tasks WHERE state = 'RUNNING'), (SELECT coalesce(sum(memory_mb), 0) FROM tasks WHERE state = 'RUNNING'),
		(SELECT count(*) FROM builds WHERE state = 'STAGING'), (SELECT count(*) FROM deployments WHERE status_value = 'ACTIVE'),
		(SELECT count(*) FROM jobs WHERE state IN ('PROCESSING', 'POLLING')), (SELECT count(*) FROM service_instances)`).Scan(
		&t.Orgs, &t.Spaces, &t.Apps, &t.StartedApps, &t.Routes, &t.Users, &t.RunningTasks, &t.RunningTasksMB,
		&t.Stagings, &t.ActiveDeployments, &t.WaitingJobs, &t.ServiceInstances)
	return t, err
}

// CountAll counts the rows of every table, by its name.
func (tx *Tx) CountAll() (map[string]int64, error) {
	names, err := tx.texts("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := tx.sql.QueryRowContext(tx.ctx, `SELECT count(*) FROM "`+name+`"`).Scan(&n); err != nil {
			return nil, err
		}
		all[name] = n
	}
	return all, nil
}
