package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TCPRoute has a port lead to an app.
func (d *Daemon) TCPRoute(app string, port int) (guid string) {
	d.T.Helper()
	var groups []struct{ GUID string }
	d.API("GET", "/routing/v1/router_groups?name=default-tcp", nil, &groups)
	var domain, route struct{ GUID string }
	d.API("POST", "/v3/domains", Doc{"name": "tcp.test", "router_group": Doc{"guid": groups[0].GUID}}, &domain)
	where := Doc{"space": ToOne(d.First("/v3/spaces?names=dev")), "domain": ToOne(domain.GUID)}
	d.API("POST", "/v3/routes", Doc{"port": port, "relationships": where}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", Doc{"destinations": []Doc{{"app": Doc{"guid": d.App(app)}}}}, nil)
	return route.GUID
}

// Answers waits until who asks at a port gets an answer, or an error, that says so.
func Answers(t *testing.T, port int, says string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	Eventually(t, time.Minute, func() string {
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
