package broker

import (
	"fmt"
	"net/http"
	"testing"

	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestStatementsGrowWithOperations has a broker asked for ever more instances at
// once: each costs the database the same.
func TestStatementsGrowWithOperations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and has nothing for it")
	}
	each := func(n int) float64 {
		w := newWorld(t)
		w.run()
		w.sync()
		before := w.store.Statements()
		for i := range n {
			w.begin(cf.JobCreateInstance, w.instance(fmt.Sprint(i), "small"), work())
		}
		w.quiet()
		return float64(w.store.Statements()-before) / float64(n)
	}
	few, many := each(20), each(200)
	t.Logf("%.0f and %.0f statements", few, many)
	if many > 2*few {
		t.Errorf("an operation takes %.0f statements among 200, and %.0f among 20", many, few)
	}
}

// TestASlowBrokerHoldsUpNoOther has one broker with more to do than it is asked
// at once.
func TestASlowBrokerHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	slowed := make(chan struct{})
	w.broker.Fault("PUT", "instance", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-slowed:
		case <-r.Context().Done():
		}
	})
	for i := range 3 * maxPerBroker {
		w.begin(cf.JobCreateInstance, w.instance(fmt.Sprint(i), "small"), work())
	}
	other := osbtest.New()
	defer other.Close()
	defer close(slowed)
	w.write(func(tx *store.Tx) error {
		return store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: guid("broker-2"), Name: "other", URL: other.URL, Username: osbtest.Username, Password: osbtest.Password, State: cf.BrokerSynchronizing})
	})
	if j := w.job(cf.JobSyncBroker, "broker-2", work()); j.State != cf.JobComplete {
		t.Errorf("got %+v", j)
	}
}
