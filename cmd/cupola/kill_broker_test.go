package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"cupola/server/osb/osbtest"
)

// assassin has a daemon killed at every third request to a broker or so: before
// the broker did what it was asked for, or after it, or when it has answered.
type assassin struct {
	hits chan struct{} // the daemon is to be killed now
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
	d := startDaemon(t, needBinary(t))
	b := osbtest.New()
	defer b.Close()
	plan := d.offered(b, "small")
	space := d.first("/v3/spaces?names=dev")
	d.api("POST", "/v3/apps", doc{"name": "bound", "relationships": doc{"space": toOne(space)}}, nil)
	b.SetAsync(true, 1)
	a := newAssassin(b)
	const made = "&operation_states=succeeded"
	d.api("POST", "/v3/service_instances", doc{"type": "managed", "name": "db",
		"relationships": doc{"space": toOne(space), "service_plan": toOne(plan)}}, nil)
	kills := d.surviving(a, "/v3/service_instances?names=db"+made, 1)
	b.SetAsync(false, 0)
	service := d.first("/v3/service_instances?names=db")
	bindings := "/v3/service_credential_bindings?service_instance_guids=" + service
	d.api("POST", "/v3/service_credential_bindings", doc{"type": "key", "name": "k", "relationships": doc{"service_instance": toOne(service)}}, nil)
	d.bind("bound", service)
	kills += d.surviving(a, bindings+made, 2)
	if things := b.Things(); len(things) != 3 {
		t.Errorf("the broker has %v; want an instance and two bindings", things)
	}
	d.api("DELETE", "/v3/service_credential_bindings/"+d.first(bindings+"&type=app"), nil, nil)
	kills += d.surviving(a, bindings, 1)
	b.SetAsync(true, 1)
	d.api("DELETE", "/v3/service_instances/"+service, nil, nil)
	kills += d.surviving(a, "/v3/service_instances?names=db", 0)
	eventually(t, 20*time.Second, func() string {
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
// many things, and tells how often.
func (d *daemon) surviving(a *assassin, path string, n int) (kills int) {
	d.t.Helper()
	api := d.client()
	eventually(d.t, time.Minute, func() string {
		select {
		case <-a.hits:
			kills++
			d.kill()
			d.start()
		default:
		}
		var list struct {
			Pagination struct {
				Total int `json:"total_results"`
			}
		}
		if err := api.call(d.t.Context(), "GET", path, nil, &list); err != nil || list.Pagination.Total != n {
			return fmt.Sprintf("%d things at %s, %v; want %d", list.Pagination.Total, path, err, n)
		}
		return ""
	})
	return kills
}
