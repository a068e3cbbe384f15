package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// freePorts are ports of 127.0.0.1 that nobody has.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// TestRoutes has routes of other kinds than host and path lead to an app.
func TestRoutes(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 3)
	d := startDaemon(t, needBinary(t), "--tcp", fmt.Sprintf("127.0.0.1:%d,%d", ports[0], ports[1]), "--https", fmt.Sprintf("127.0.0.1:%d", ports[2]))
	d.pushProbe("probe")
	t.Run("policies", func(t *testing.T) { d.on(t).callersAreKnown(t, ports[2]) })
	d.portsHold(t, ports) // it starts another process: no copy of d would do
}

// portsHold reaches an app by a port of its own: it outlives a kill of the
// daemon, waits for a port that another program has, and ends with its route.
func (d *daemon) portsHold(t *testing.T, ports []int) {
	t.Helper()
	route := d.tcpRoute("probe", ports[0])
	where := doc{"space": toOne(d.first("/v3/spaces?names=dev")), "domain": toOne(d.first("/v3/domains?names=tcp.test"))}
	answers(t, ports[0], "ready")

	d.kill()
	other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	d.start()
	d.routerTold("probe", fmt.Sprintf("TCP route: cannot listen at port %d, which is tried again", ports[0]))
	other.Close()
	answers(t, ports[0], "ready")
	d.routerTold("probe", fmt.Sprintf("TCP route: listening at port %d", ports[0]))

	other, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want := fmt.Sprintf("Port '%d' is not available. Try a different port or use a different domain.", ports[1])
	if err := d.client().call(t.Context(), "POST", "/v3/routes", doc{"port": ports[1], "relationships": where}, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
	d.api("DELETE", "/v3/routes/"+route, nil, nil)
	answers(t, ports[0], "refused")
}

// tcpRoute has a port lead to an app.
func (d *daemon) tcpRoute(app string, port int) (guid string) {
	d.t.Helper()
	var groups []struct{ GUID string }
	d.api("GET", "/routing/v1/router_groups?name=default-tcp", nil, &groups)
	var domain, route struct{ GUID string }
	d.api("POST", "/v3/domains", doc{"name": "tcp.test", "router_group": doc{"guid": groups[0].GUID}}, &domain)
	where := doc{"space": toOne(d.first("/v3/spaces?names=dev")), "domain": toOne(domain.GUID)}
	d.api("POST", "/v3/routes", doc{"port": port, "relationships": where}, &route)
	d.api("POST", "/v3/routes/"+route.GUID+"/destinations", doc{"destinations": []doc{{"app": doc{"guid": d.app(app)}}}}, nil)
	return route.GUID
}

// answers waits until who asks at a port gets an answer, or an error, that says so.
func answers(t *testing.T, port int, says string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually(t, 10*time.Second, func() string {
		res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err == nil {
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			err = fmt.Errorf("%d %s", res.StatusCode, body)
		}
		if strings.Contains(err.Error(), says) {
			return ""
		}
		return err.Error()
	})
}

// routerTold waits until the router has said something in an app's log.
func (d *daemon) routerTold(app, text string) {
	d.t.Helper()
	guid := d.app(app)
	eventually(d.t, 10*time.Second, func() string {
		var log struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.api("GET", "/api/v1/read/"+guid+"?envelope_types=LOG&limit=1000", nil, &log)
		for _, e := range log.Envelopes.Batch {
			if e.Tags["source_type"] == "RTR" && strings.Contains(string(e.Log.Payload), text) {
				return ""
			}
		}
		return "the router has not said: " + text
	})
}
