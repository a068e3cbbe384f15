package broker

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"cupola/server/osb/osbtest"
	"cupola/store/cf"
)

// TestKilledAnywhere takes an instance with a binding through its life, and
// ends the loop while the broker has a request: at every request in turn, once
// before the broker did what it was asked for and once after it. A new loop
// carries on. Nothing may fail, and nothing may be left at the broker.
func TestKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and has nothing for it")
	}
	for _, polls := range []int{0, 1} {
		for at := 1; ; at++ {
			killed := false
			for _, obeys := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d polls, request %d, obeyed %v", polls, at, obeys), func(t *testing.T) {
					killed = killedAt(t, polls, at, obeys) || killed
				})
			}
			if t.Failed() || !killed {
				break
			}
		}
	}
}

// killedAt lives a life in which the loop is ended at a request, and tells
// whether there were that many.
func killedAt(t *testing.T, polls, at int, obeys bool) bool {
	w := newWorld(t)
	var n atomic.Int64
	kill, killed := make(chan struct{}), make(chan struct{})
	w.broker.Watch(func(r *http.Request) {
		if n.Add(1) != int64(at) {
			return
		}
		if obeys {
			w.broker.Obey(r)
		}
		close(kill)
		<-r.Context().Done()
	})
	w.run()
	ended := make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-kill:
			w.stop()
			w.run()
		case <-ended:
		}
	}()
	w.live(polls)
	close(ended)
	<-killed
	w.quiet()
	if got := w.broker.Things(); len(got) != 0 {
		t.Errorf("the broker has %v", got)
	}
	select {
	case <-kill:
		return true
	default:
		return false
	}
}

// live makes, binds, changes and deletes an instance.
func (w *world) live(polls int) {
	w.t.Helper()
	w.sync()
	w.broker.SetAsync(polls > 0, polls)
	i := w.create("db")
	b := w.binding(i, cf.BindingApp, "b")
	steps := []struct {
		operation, resource string
		begins              string
	}{{cf.JobCreateBinding, b, ""}, {cf.JobUpdateInstance, i, cf.OpUpdate}, {cf.JobDeleteInstance, i, cf.OpDelete}}
	for _, s := range steps {
		if s.begins != "" {
			w.begins(i, s.begins)
		}
		if j := w.job(s.operation, s.resource, work()); j.State != cf.JobComplete {
			w.t.Fatalf("%s: %+v", s.operation, j.Errors)
		}
		if s.operation == cf.JobCreateBinding && len(w.getBinding(b).Credentials) == 0 {
			w.t.Error("the binding has no credentials")
		}
	}
	if w.getInstance(i) != nil || w.getBinding(b) != nil {
		w.t.Error("rows are left")
	}
}

// TestChangedItsMind makes the loop end after the broker made an instance, and
// the broker refuse it when it is asked again.
func TestChangedItsMind(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	asked := make(chan struct{})
	w.broker.Fault("PUT", "instance", func(_ http.ResponseWriter, r *http.Request) {
		w.broker.Obey(r)
		w.broker.Fault("PUT", "instance", osbtest.Answer(400, `{"description": "no more"}`))
		close(asked)
		<-r.Context().Done()
	})
	i := w.instance("db", "small")
	job := w.begin(cf.JobCreateInstance, i, work())
	<-asked
	w.run()
	w.failsWith(w.ended(job), "provision could not be completed: Service broker error: no more")
	w.quiet()
	w.wantGone(true)
}
