package broker

import (
	"net"
	"testing"

	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestBrokersOfSpaces reaches a broker of a space on the loopback only through
// the platform's router, or where the operator lets it.
func TestBrokersOfSpaces(t *testing.T) {
	w := newWorld(t)
	address := w.broker.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		url      string
		loopback bool
		want     string
	}{
		"loopback": {w.broker.URL, false, "The request to the service broker failed: GET /v2/catalog: dial tcp " + address + ": the apps of its space may not connect to it by their security groups"},
		"allowed":  {w.broker.URL, true, ""},
		"own app":  {"http://broker.apps.test:" + port, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.config.Network.Where.Local = c.loopback
			w.config.Network.Router = func(p string) string {
				if p == port && c.want == "" {
					return address
				}
				return ""
			}
			w.config.Client = osb.New(osb.Config{})
			w.run()
			w.write(func(tx *store.Tx) error {
				return store.ServiceBrokers.Put(tx, &cf.ServiceBroker{Resource: guid("mine"), Name: "mine", URL: c.url, Username: osbtest.Username, Password: osbtest.Password, SpaceGUID: "space-1", State: cf.BrokerSynchronizing})
			})
			j := w.job(cf.JobSyncBroker, "mine", work())
			if c.want != "" {
				w.failsWith(j, c.want)
			} else if j.State != cf.JobComplete {
				t.Errorf("got %+v", j.Errors)
			}
		})
	}
}
