package broker

import (
	"net/http"
	"testing"
	"time"

	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// orphan makes the broker make an instance that the platform takes for failed.
func (w *world) orphan() {
	w.t.Helper()
	w.broker.Fault("PUT", "instance", w.made(osbtest.Answer(500, "{}")))
	w.job(cf.JobCreateInstance, w.instance("db", "small"), work())
}

// TestOrphansAreAbandoned has a broker that never deletes what it should not
// have made: it is asked for as long as an operation may take, and an
// audit event names what is left.
func TestOrphansAreAbandoned(t *testing.T) {
	for name, c := range map[string]struct {
		f      http.HandlerFunc
		reason string
	}{
		"500":           {osbtest.Answer(500, `{"description": "never"}`), "delete could not be completed: Service broker error: never"},
		"async forever": {osbtest.Answer(202, "{}"), "the service broker has not ended its deletion"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.OrphanCare = 2 * time.Second
			w.run()
			w.sync()
			w.broker.Fault("DELETE", "instance", c.f)
			w.broker.Fault("GET", "last_operation", osbtest.Answer(200, `{"state": "in progress"}`))
			w.orphan()
			w.quiet()
			w.read(func(tx *store.Tx) error {
				list, err := store.Events.By(tx, "types", "audit.service_broker.abandon_orphan")
				if len(list) != 1 {
					t.Fatalf("got %d events, %v", len(list), err)
				}
				if list[0].TargetGUID != "broker-1" || list[0].Data["service_instance_guid"] != "instance-db" || list[0].Data["reason"] != c.reason {
					t.Errorf("got %+v; want one that says %q", list[0].Data, c.reason)
				}
				return err
			})
			asked := 0
			for _, r := range w.broker.Requests() {
				if r.Method == http.MethodDelete || r.Path == "/v2/service_instances/instance-db/last_operation" {
					asked++
				}
			}
			if asked < 3 {
				t.Errorf("the broker was asked %d times; want more", asked)
			}
		})
	}
}

// TestOrphansOutliveTheDaemon ends the loop after an orphan was not deleted: the
// next deletes it.
func TestOrphansOutliveTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.config.OrphanRetry = 50 * time.Millisecond
	w.run()
	w.sync()
	refused := make(chan struct{}, 10)
	w.broker.Fault("DELETE", "instance", func(rw http.ResponseWriter, r *http.Request) {
		osbtest.Answer(500, "{}")(rw, r)
		refused <- struct{}{}
	})
	w.orphan()
	for range 2 {
		<-refused
		w.run()
	}
	w.stop()
	w.broker.Fault("DELETE", "instance", nil)
	w.run()
	w.quiet()
	w.wantGone(true)
}
