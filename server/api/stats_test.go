package api

import (
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// The CLI takes whole numbers alone, and stops at any other.
func TestStatsOfInstances(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		a, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		a.State = cf.Started
		if err := store.Apps.Update(tx, a); err != nil {
			return err
		}
		p, err := store.Processes.Get(tx, "app-1")
		if err != nil {
			return err
		}
		p.Instances = 4
		if err := store.Processes.Update(tx, p); err != nil {
			return err
		}
		for i, row := range []lrp.Actual{{State: lrp.Running, Ready: true, Address: "10.0.0.1", Ports: []uint16{8080}}, {State: lrp.Crashed}, {State: lrp.Unclaimed, PlacementError: "insufficient resources"}} {
			row.ProcessGUID, row.Index, row.InstanceGUID, row.Since = desire.ProcessGUID(p, a), i, "instance", tx.Now
			if err := tx.InsertActual(row); err != nil {
				return err
			}
		}
		return nil
	})
	w.run(t, []step{{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [
		{"type": "web", "index": 0, "state": "RUNNING", "routable": true, "uptime": 0, "details": null, "isolation_segment": null, "mem_quota": 1073741824, "disk_quota": 1073741824,
			"log_rate_limit": 1048576, "usage": {"cpu": 0, "mem": 0, "disk": 0, "log_rate": 0}},
		{"index": 1, "state": "CRASHED", "routable": null, "uptime": 0},
		{"index": 2, "state": "DOWN", "details": "insufficient resources"},
		{"index": 3, "state": "DOWN", "details": null}]}`}})
	got := w.ask("admin", "GET", "/v3/processes/app-1/stats", "", "")
	running := got.json.(map[string]any)["resources"].([]any)[0]
	for _, f := range expand(t, map[string][]string{}, "", []string{"mem_quota:n", "disk_quota:n", "log_rate_limit:i", "uptime:n", "usage.mem:n", "usage.disk:n", "usage.log_rate:n", "instance_ports:a", "host:s"}) {
		if why := f.lacks(running, f.path); why != "" {
			t.Error(why)
		}
	}
}
