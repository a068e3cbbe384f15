package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// internal is where front looks for back.
const internal = "back.apps.internal"

// TestNetworkPolicies has two apps find each other by an internal route, and
// reach each other when a policy lets them, while they run.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.pushProbe("front")
	d.pushProbe("back")
	before := d.running("front", "web", 1)[0]
	d.namesFollow()
	d.policiesHold()
	d.groupsHold()
	d.namesAreForContainers()
	if now := d.running("front", "web", 1)[0]; now.InstanceGUID != before.InstanceGUID {
		t.Error("front was started anew")
	}
}

// looksUp waits until front finds these addresses by a name; none: no such name.
func (d *daemon) looksUp(name string, want ...string) {
	d.t.Helper()
	slices.Sort(want)
	eventually(d.t, 5*time.Second, func() string {
		_, said, err := d.get("front.localhost", "/lookup?name="+name)
		if said = strings.TrimSpace(said); said == strings.Join(want, " ") || len(want) == 0 && strings.HasSuffix(said, "no such host") {
			return ""
		}
		return fmt.Sprintf("%s: got %q, %v; want %v", name, said, err, want)
	})
}

// namesFollow maps the internal route, scales what it leads to, and kills the
// daemon.
func (d *daemon) namesFollow() {
	d.t.Helper()
	var domains struct {
		Resources []struct {
			GUID     string
			Internal bool
		}
	}
	d.api("GET", "/v3/domains?names=apps.internal", nil, &domains)
	if len(domains.Resources) != 1 || !domains.Resources[0].Internal {
		d.t.Fatalf("got %+v; want an internal domain", domains)
	}
	d.looksUp(internal)
	var spaces struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/spaces", nil, &spaces)
	var route struct{ GUID string }
	to := func(guid string) doc { return doc{"data": doc{"guid": guid}} }
	d.api("POST", "/v3/routes", doc{"host": "back", "relationships": doc{"space": to(spaces.Resources[0].GUID), "domain": to(domains.Resources[0].GUID)}}, &route)
	d.api("POST", "/v3/routes/"+route.GUID+"/destinations", doc{"destinations": []doc{{"app": doc{"guid": d.app("back")}}}}, nil)
	one := d.running("back", "web", 1)[0]
	d.looksUp(internal, one.Host)
	d.api("POST", "/v3/apps/"+d.app("back")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	two := d.running("back", "web", 2)
	d.looksUp(internal, two[0].Host, two[1].Host)
	for _, i := range two {
		d.looksUp(fmt.Sprintf("%d.%s", i.Index, internal), i.Host)
	}
	d.looksUp("2." + internal)
	if status, _, _ := d.get(internal, "/"); status != 404 {
		d.t.Errorf("the router says %d for an internal route; want 404", status)
	}
	front := d.running("front", "web", 1)[0].Host
	d.kill()
	said := make(chan string, 1)
	go func() { said <- lookUpFrom(front, internal) }()
	d.start()
	if got := <-said; !strings.Contains(got, two[0].Host) {
		d.t.Errorf("who asked while there was no daemon got %q; want the addresses when there is", got)
	}
	d.looksUp(strings.ToUpper(internal), two[0].Host, two[1].Host)
}

// lookUpFrom asks front at its own address.
func lookUpFrom(host, name string) string {
	res, err := http.Get("http://" + host + ":8080/lookup?name=" + name)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return fmt.Sprint(string(b), err)
}

// policiesHold lets front reach back, then not, then again; a daemon that is
// killed changes nothing.
func (d *daemon) policiesHold() {
	d.t.Helper()
	policy := doc{"policies": []doc{{"source": doc{"id": d.app("front")}, "destination": doc{"id": d.app("back"), "protocol": "tcp", "ports": doc{"start": 8080, "end": 8080}}}}}
	const path = "/networking/v1/external/policies"
	d.soonReaches("front", internal+":8080", false)
	for range 2 {
		d.api("POST", path, policy, nil)
		d.soonReaches("front", internal+":8080", true)
		d.soonReaches("front", internal+":8081", false)
		d.soonReaches("back", d.running("front", "web", 1)[0].Host+":8080", false)
		d.kill()
		d.start()
		d.soonReaches("front", "1."+internal+":8080", true)
		d.api("POST", path+"/delete", policy, nil)
		d.soonReaches("front", internal+":8080", false)
	}
	d.api("POST", path, policy, nil)
	d.api("POST", "/v3/apps/"+d.app("back")+"/processes/web/actions/scale", doc{"instances": 3}, nil)
	for _, i := range d.running("back", "web", 3) {
		d.soonReaches("front", i.Host+":8080", true)
	}
}

// groupsHold cuts and restores the egress of a running app.
func (d *daemon) groupsHold() {
	d.t.Helper()
	o := newOutside(d.t.(*testing.T))
	ip := o.private.String()
	d.soonReaches("front", ip+":80", false)
	var group struct{ GUID string }
	rule := doc{"protocol": "tcp", "destination": ip, "ports": "80"}
	d.api("POST", "/v3/security_groups", doc{"name": "private", "rules": []doc{rule}}, &group)
	at := "/v3/security_groups/" + group.GUID
	for _, globally := range []bool{true, false, true} {
		d.api("PATCH", at, doc{"globally_enabled": doc{"running": globally}}, nil)
		d.soonReaches("front", ip+":80", globally)
	}
	d.api("PATCH", at, doc{"rules": []doc{}}, nil)
	d.soonReaches("front", ip+":80", false)
	d.api("PATCH", at, doc{"globally_enabled": doc{"running": false}, "rules": []doc{rule}}, nil)
	var spaces struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/spaces", nil, &spaces)
	d.api("POST", at+"/relationships/running_spaces", doc{"data": []doc{{"guid": spaces.Resources[0].GUID}}}, nil)
	d.soonReaches("front", ip+":80", true)
	d.api("DELETE", at+"/relationships/running_spaces/"+spaces.Resources[0].GUID, nil, nil)
	d.soonReaches("front", ip+":80", false)
	d.kill()
	d.start()
	d.soonReaches("front", ip+":80", false)
	d.soonReaches("front", o.public.String()+":80", true)
}

// namesAreForContainers asks from an address that is no container's.
func (d *daemon) namesAreForContainers() {
	d.t.Helper()
	_, said, err := d.get("front.localhost", "/resolv.conf")
	server, ok := strings.CutPrefix(strings.TrimSpace(said), "nameserver ")
	if err != nil || !ok || net.ParseIP(server) == nil {
		d.t.Fatalf("got resolv.conf %q, %v; want one name server", said, err)
	}
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, Timeout: time.Second}
	c, err := dialer.Dial("udp", server+":53")
	if err != nil {
		return // the kernel lets nobody ask from there
	}
	defer c.Close()
	if _, err := c.Write([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04apps\x08internal\x00\x00\x01\x00\x01")); err != nil {
		return
	}
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		d.t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 512)); err == nil {
		d.t.Errorf("one who is no container got an answer of %d bytes", n)
	}
}
