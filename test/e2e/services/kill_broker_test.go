package services

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"cupola/server/osb/osbtest"
	"cupola/test/e2e"
)

// assassin kills a daemon at every third request to a broker or so: before
// the broker did what it was asked for, or after it, or when it has answered.
type assassin struct {
	hits chan struct{} // the daemon must be killed now
	next chan int      // requests until the next time; holds one
}

func newAssassin(b *osbtest.Broker) *assassin {
	a := &assassin{make(chan struct{}, 100), make(chan int, 1)}
	a.next <- 1
	b.Watch(func(r *http.Request) {
		next := <-a.next - 1
		if next > 0 {
			a.next <- next
			return
		}
		a.next <- 2 + rand.N(3)
		how := rand.N(3)
		if how == 0 {
			b.Obey(r)
		}
		a.hits <- struct{}{}
		if how < 2 {
			<-r.Context().Done()
		}
	})
	return a
}

// TestKilledWhileBrokersAreAsked takes an instance and what is bound to it
// through their lives, and kills the daemon at any request to their broker.
// Nothing is lost, and nothing is left at the broker.
func TestKilledWhileBrokersAreAsked(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	b := osbtest.New()
	defer b.Close()
	plan := offered(d, b, "small")
	space := d.First("/v3/spaces?names=dev")
	d.API("POST", "/v3/apps", e2e.Doc{"name": "bound", "relationships": e2e.Doc{"space": e2e.ToOne(space)}}, nil)
	b.SetAsync(true, 1)
	a := newAssassin(b)
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "managed", "name": "db",
		"relationships": e2e.Doc{"space": e2e.ToOne(space), "service_plan": e2e.ToOne(plan)}}, nil)
	kills := surviving(d, a, "/v3/service_instances?names=db", 1, "succeeded")
	b.SetAsync(false, 0)
	service := d.First("/v3/service_instances?names=db")
	bindings := "/v3/service_credential_bindings?service_instance_guids=" + service
	d.API("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "key", "name": "k", "relationships": e2e.Doc{"service_instance": e2e.ToOne(service)}}, nil)
	d.Bind("bound", service)
	kills += surviving(d, a, bindings, 2, "succeeded")
	if things := b.Things(); len(things) != 3 {
		t.Errorf("the broker has %v; want an instance and two bindings", things)
	}
	d.API("DELETE", "/v3/service_credential_bindings/"+d.First(bindings+"&type=app"), nil, nil)
	kills += surviving(d, a, bindings, 1, "")
	b.SetAsync(true, 1)
	d.API("DELETE", "/v3/service_instances/"+service, nil, nil)
	kills += surviving(d, a, "/v3/service_instances?names=db", 0, "")
	e2e.Eventually(t, time.Minute, func() string {
		if things := b.Things(); len(things) > 0 {
			return fmt.Sprintf("the broker has %v", things)
		}
		return ""
	})
	if t.Logf("killed %d times, %d requests", kills, len(b.Requests())); kills == 0 {
		t.Error("the daemon was never killed")
	}
}

// surviving kills the daemon whenever the assassin says so, until a list has so
// many things, whose last operation is in the state unless that is "", and tells
// how often.
func surviving(d *e2e.Daemon, a *assassin, path string, n int, state string) (kills int) {
	d.T.Helper()
	api := d.Client()
	e2e.Eventually(d.T, time.Minute, func() string {
		select {
		case <-a.hits:
			kills++
			d.Kill()
			d.Start()
		default:
		}
		var list struct{ Resources []withOperation }
		err := api.Call(d.T.Context(), "GET", path, nil, &list)
		found := 0
		for _, r := range list.Resources {
			if state == "" || r.LastOperation.State == state {
				found++
			}
		}
		if err != nil || found != n {
			return fmt.Sprintf("%d things at %s, %v; want %d", found, path, err, n)
		}
		return ""
	})
	return kills
}

// withOperation is a service instance or binding as far as what was last done to it.
type withOperation struct {
	LastOperation struct{ State string } `json:"last_operation"`
}
