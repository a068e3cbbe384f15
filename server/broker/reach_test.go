package broker

import (
	"net"
	"net/netip"
	"testing"

	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestReach asks which addresses the rules of a space let its brokers be at.
func TestReach(t *testing.T) {
	r := &reach{rules: []cf.SecurityRule{
		{Protocol: "all", Destination: "0.0.0.0-9.255.255.255"},
		{Protocol: "tcp", Destination: "10.1.0.0/16, 10.9.9.9", Ports: "443,8000-8100"},
		{Protocol: "udp", Destination: "10.2.0.0/16", Ports: "53"},
		{Protocol: "all", Destination: "127.0.0.0/8,169.254.0.0/16,fc00::/7"},
	}}
	for address, want := range map[string]bool{
		"8.8.8.8:1": true, "11.0.0.1:443": false, "10.1.2.3:443": true, "10.1.2.3:8050": true, "10.1.2.3:80": false, "10.9.9.9:443": true,
		"10.2.0.1:53": false, "127.0.0.1:443": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[::1]:80": false, "[fc00::1]:80": true, "[fe80::1]:80": false, "[::ffff:127.0.0.1]:80": false,
	} {
		at := netip.MustParseAddrPort(address)
		if got := r.allows(netip.AddrPortFrom(at.Addr().Unmap(), at.Port())); got != want {
			t.Errorf("%s: got %v; want %v", address, got, want)
		}
	}
}

// TestBrokersOfSpaces reaches a broker of a space on the loopback only through
// the platform's front, or where the operator lets it.
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
		"loopback": {w.broker.URL, false, "The request to the service broker failed: GET /v2/catalog: dial tcp " + address + ": the apps of the broker's space may not connect to it by their security groups"},
		"allowed":  {w.broker.URL, true, ""},
		"own app":  {"http://broker.apps.test:" + port, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.config.Loopback = c.loopback
			w.config.Front = func(p string) string {
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
