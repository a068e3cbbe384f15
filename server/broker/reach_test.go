package broker

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"cupola/runtime/egress"
	"cupola/runtime/egress/egresstest"
	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestReach asks which addresses the rules of a space let its brokers be at.
func TestReach(t *testing.T) {
	r := &reach{where: egress.Guard{Containers: netip.MustParsePrefix("10.251.0.0/16")}, rules: []cf.SecurityRule{
		{Protocol: "all", Destination: "0.0.0.0-9.255.255.255"},
		{Protocol: "tcp", Destination: "10.1.0.0/16, 10.9.9.9", Ports: "443,8000-8100"},
		{Protocol: "udp", Destination: "10.2.0.0/16", Ports: "53"},
		{Protocol: "all", Destination: "127.0.0.0/8,169.254.0.0/16,fc00::/7"},
		{Protocol: "all", Destination: "10.250.0.0-10.252.255.255, 168.63.0.0/16"},
		{Protocol: "all", Destination: "10.248.0.0/13,10.251.7.0/24"},
	}}
	for address, want := range map[string]bool{
		"8.8.8.8:1": true, "11.0.0.1:443": false, "10.1.2.3:443": true, "10.1.2.3:8050": true, "10.1.2.3:80": false, "10.9.9.9:443": true,
		"10.2.0.1:53": false, "127.0.0.1:443": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[::1]:80": false, "[fc00::1]:80": true, "[fe80::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"10.250.9.9:6379": true, "10.252.255.255:6379": true, "10.251.3.4:6379": false, "[::ffff:10.251.3.4]:6379": false, "10.251.7.4:6379": true, "168.63.129.16:80": false, "168.63.129.17:80": true,
	} {
		if got := r.allows(netip.MustParseAddrPort(address)); got != want {
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
			w.config.Where.Local = c.loopback
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

// Networks that a rule names are other machines: this one only where the rule
// says so.
func TestReachOfThisMachine(t *testing.T) {
	own := ""
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			own = p.Addr().String()
		}
	}
	if own == "" {
		t.Skip("this machine has no address but the loopback's")
	}
	for _, c := range []struct {
		rule cf.SecurityRule
		want bool
	}{
		{cf.SecurityRule{Protocol: "all", Destination: "0.0.0.0-255.255.255.255"}, false},
		{cf.SecurityRule{Protocol: "tcp", Destination: "0.0.0.0/0", Ports: "9100"}, true},
		{cf.SecurityRule{Protocol: "all", Destination: own}, true},
	} {
		r := &reach{rules: []cf.SecurityRule{c.rule}}
		if got := r.allows(netip.MustParseAddrPort(own + ":9100")); got != c.want {
			t.Errorf("%+v: got %t; want %t", c.rule, got, c.want)
		}
	}
}

// A broker is led no further than its rules, by whatever form of an address; an
// admin's not to addresses that are always refused.
func TestBrokersAreGuarded(t *testing.T) {
	n := egresstest.New(t)
	all := []cf.SecurityRule{{Protocol: "all", Destination: "0.0.0.0/0"}, {Protocol: "all", Destination: "::/0"}}
	for name, c := range map[string]struct {
		reach reach
		guard egress.Guard
		want  error
	}{
		"of a space": {reach{rules: all}, egresstest.Strict, errOutOfReach},
		"an admin's": {reach{anywhere: true}, egress.Guard{Operator: true}, egress.ErrAddress},
	} {
		dial := c.reach.dialer(func(string) string { return "" }, c.guard)
		client := osb.New(osb.Config{})
		for _, target := range n.Refused(c.guard) {
			_, err := client.Catalog(t.Context(), osb.Broker{URL: "http://" + target.Address, Dial: dial}, "user")
			if err == nil || !strings.Contains(err.Error(), c.want.Error()) {
				t.Errorf("%s: %s (%s): got %v; want %v", name, target.Name, target.Address, err, c.want)
			}
		}
	}
	if c := n.Connections(); c > 0 {
		t.Errorf("%d connections were made", c)
	}
}
