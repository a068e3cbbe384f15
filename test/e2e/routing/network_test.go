package routing

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// internal is where front looks for back.
const internal = "back.apps.internal"

// TestNetworkPolicies has two apps find each other by an internal route, and
// reach each other when a policy lets them, while they run.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("front")
	d.PushProbe("back")
	before := d.Running("front", "web", 1)[0]
	routesAreReached(d)
	namesFollow(d)
	policiesHold(d)
	groupsHold(d)
	namesAreForContainers(d)
	if now := d.Running("front", "web", 1)[0]; now.InstanceGUID != before.InstanceGUID {
		t.Error("front was restarted")
	}
}

// looksUp waits until front finds these addresses by a name; none: no such name.
func looksUp(d *e2e.Daemon, name string, want ...string) {
	d.T.Helper()
	slices.Sort(want)
	e2e.Eventually(d.T, time.Minute, func() string {
		_, said, err := d.Get("front.localhost", "/lookup?name="+name)
		if said = strings.TrimSpace(said); said == strings.Join(want, " ") || len(want) == 0 && strings.HasSuffix(said, "no such host") {
			return ""
		}
		return fmt.Sprintf("%s: got %q, %v; want %v", name, said, err, want)
	})
}

// routesAreReached has front use the route of back, also while the daemon is killed, and
// not once it may reach no network.
func routesAreReached(d *e2e.Daemon) {
	d.T.Helper()
	_, port, _ := net.SplitHostPort(d.Addr)
	fetched := func() (string, error) {
		_, said, err := d.Get("front.localhost", "/fetch?url=http://back.localhost:"+port+"/")
		return said, err
	}
	if said, err := fetched(); said != "200 ready\n" {
		d.T.Errorf("front got %q, %v by the route of back; want ready", said, err)
	}
	front := d.Running("front", "web", 1)[0].Host
	d.Kill()
	said := make(chan string, 1)
	go func() { said <- answerOf("http://" + front + ":8080/fetch?url=http://back.localhost:" + port + "/") }()
	d.Start()
	if got := <-said; strings.Contains(got, "refused") { // it waits five seconds, which may be too short
		d.T.Errorf("who asked for a route while there was no daemon got %q; want the answer when there is", got)
	}
	var groups struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/security_groups?names=public_networks", nil, &groups)
	for _, allowed := range []bool{false, true} {
		d.API("PATCH", "/v3/security_groups/"+groups.Resources[0].GUID, e2e.Doc{"globally_enabled": e2e.Doc{"running": allowed}}, nil)
		d.SoonReaches("front", "back.localhost:"+port, allowed)
	}
}

// namesFollow maps the internal route, scales what it leads to, and kills the
// daemon.
func namesFollow(d *e2e.Daemon) {
	d.T.Helper()
	var domains struct {
		Resources []struct {
			GUID     string
			Internal bool
		}
	}
	d.API("GET", "/v3/domains?names=apps.internal", nil, &domains)
	if len(domains.Resources) != 1 || !domains.Resources[0].Internal {
		d.T.Fatalf("got %+v; want an internal domain", domains)
	}
	looksUp(d, internal)
	var spaces struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/spaces", nil, &spaces)
	var route struct{ GUID string }
	to := func(guid string) e2e.Doc { return e2e.Doc{"data": e2e.Doc{"guid": guid}} }
	d.API("POST", "/v3/routes", e2e.Doc{"host": "back", "relationships": e2e.Doc{"space": to(spaces.Resources[0].GUID), "domain": to(domains.Resources[0].GUID)}}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": d.App("back")}}}}, nil)
	one := d.Running("back", "web", 1)[0]
	looksUp(d, internal, one.Host)
	d.API("POST", "/v3/apps/"+d.App("back")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	two := d.Running("back", "web", 2)
	looksUp(d, internal, two[0].Host, two[1].Host)
	for _, i := range two {
		looksUp(d, fmt.Sprintf("%d.%s", i.Index, internal), i.Host)
	}
	looksUp(d, "2."+internal)
	if status, _, _ := d.Get(internal, "/"); status != 404 {
		d.T.Errorf("the router says %d for an internal route; want 404", status)
	}
	front := d.Running("front", "web", 1)[0].Host
	d.Kill()
	said := make(chan string, 1)
	go func() { said <- lookUpFrom(front, internal) }()
	d.Start()
	if got := <-said; !strings.Contains(got, two[0].Host) {
		d.T.Errorf("who asked while there was no daemon got %q; want the addresses when there is", got)
	}
	looksUp(d, strings.ToUpper(internal), two[0].Host, two[1].Host)
}

// lookUpFrom asks front at its own address.
func lookUpFrom(host, name string) string {
	return answerOf("http://" + host + ":8080/lookup?name=" + name)
}

func answerOf(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return fmt.Sprint(string(b), err)
}

// policiesHold lets front reach back, then not, then again; a daemon that is
// killed changes nothing.
func policiesHold(d *e2e.Daemon) {
	d.T.Helper()
	policy := e2e.Doc{"policies": []e2e.Doc{{"source": e2e.Doc{"id": d.App("front")}, "destination": e2e.Doc{"id": d.App("back"), "protocol": "tcp", "ports": e2e.Doc{"start": 8080, "end": 8080}}}}}
	const path = "/networking/v1/external/policies"
	d.SoonReaches("front", internal+":8080", false)
	for range 2 {
		d.API("POST", path, policy, nil)
		d.SoonReaches("front", internal+":8080", true)
		d.SoonReaches("front", internal+":8081", false)
		d.SoonReaches("back", d.Running("front", "web", 1)[0].Host+":8080", false)
		d.Kill()
		d.Start()
		d.SoonReaches("front", "1."+internal+":8080", true)
		d.API("POST", path+"/delete", policy, nil)
		d.SoonReaches("front", internal+":8080", false)
	}
	d.API("POST", path, policy, nil)
	d.API("POST", "/v3/apps/"+d.App("back")+"/processes/web/actions/scale", e2e.Doc{"instances": 3}, nil)
	for _, i := range d.Running("back", "web", 3) {
		d.SoonReaches("front", i.Host+":8080", true)
	}
}

// groupsHold cuts and restores the egress of a running app.
func groupsHold(d *e2e.Daemon) {
	d.T.Helper()
	o := e2e.NewOutside(d.T.(*testing.T))
	ip := o.Private.String()
	d.SoonReaches("front", ip+":80", false)
	var group struct{ GUID string }
	rule := e2e.Doc{"protocol": "tcp", "destination": ip, "ports": "80"}
	d.API("POST", "/v3/security_groups", e2e.Doc{"name": "private", "rules": []e2e.Doc{rule}}, &group)
	at := "/v3/security_groups/" + group.GUID
	for _, globally := range []bool{true, false, true} {
		d.API("PATCH", at, e2e.Doc{"globally_enabled": e2e.Doc{"running": globally}}, nil)
		d.SoonReaches("front", ip+":80", globally)
	}
	d.API("PATCH", at, e2e.Doc{"rules": []e2e.Doc{}}, nil)
	d.SoonReaches("front", ip+":80", false)
	d.API("PATCH", at, e2e.Doc{"globally_enabled": e2e.Doc{"running": false}, "rules": []e2e.Doc{rule}}, nil)
	var spaces struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/spaces", nil, &spaces)
	d.API("POST", at+"/relationships/running_spaces", e2e.Doc{"data": []e2e.Doc{{"guid": spaces.Resources[0].GUID}}}, nil)
	d.SoonReaches("front", ip+":80", true)
	d.API("DELETE", at+"/relationships/running_spaces/"+spaces.Resources[0].GUID, nil, nil)
	d.SoonReaches("front", ip+":80", false)
	d.Kill()
	d.Start()
	d.SoonReaches("front", ip+":80", false)
	d.SoonReaches("front", o.Public.String()+":80", true)
}

// namesAreForContainers asks from an address that is no container's.
func namesAreForContainers(d *e2e.Daemon) {
	d.T.Helper()
	_, said, err := d.Get("front.localhost", "/resolv.conf")
	server, ok := strings.CutPrefix(strings.TrimSpace(said), "nameserver ")
	if err != nil || !ok || net.ParseIP(server) == nil {
		d.T.Fatalf("got resolv.conf %q, %v; want one name server", said, err)
	}
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, Timeout: time.Second}
	c, err := dialer.Dial("udp", server+":53")
	if err != nil {
		return // the kernel does not allow this source address
	}
	defer c.Close()
	if _, err := c.Write([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04apps\x08internal\x00\x00\x01\x00\x01")); err != nil {
		return
	}
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		d.T.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 512)); err == nil {
		d.T.Errorf("one who is no container got an answer of %d bytes", n)
	}
}
