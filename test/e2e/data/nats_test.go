package data

import (
	"cupola/test/e2e"
)

// natsOutlives publishes to a stream by the app client: what was acknowledged outlives the
// daemon and the server, and a restore brings back what a backup has.
func natsOutlives(d *e2e.Daemon, instance string) {
	d.T.Helper()
	answers(d, "nats", "create", "done")
	answers(d, "nats", "one", "done")
	killed(d)
	diesAndStarts(d, "plan.conf")
	answers(d, "nats", "count", "1")
	backup := backUp(d, "bus")
	answers(d, "nats", "two", "done")
	services(d, "restore", "bus", backup, "--force")
	answers(d, "nats", "count", "1")
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}
