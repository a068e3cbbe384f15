package routing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// answersAt waits until a host answers at an address of a router with a status and,
// of a router, an error.
func answersAt(d *e2e.Daemon, addr, host string, status int, routerError string) {
	d.T.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	e2e.Eventually(d.T, time.Minute, func() string {
		req, err := http.NewRequest("GET", "http://"+addr+"/", nil)
		if err != nil {
			return err.Error()
		}
		req.Host = host
		res, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		res.Body.Close()
		if got := res.Header.Get("X-Cf-RouterError"); res.StatusCode != status || got != routerError {
			return fmt.Sprintf("%s at %s: got %d %s; want %d %s", host, addr, res.StatusCode, got, status, routerError)
		}
		return ""
	})
}

// TestSegmentRouters reaches an app of an isolation segment only through the router
// that serves the segment.
func TestSegmentRouters(t *testing.T) {
	ports := loopback.FreePorts(t, 2)
	red, secure := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--cells", "[{name: a}, {name: b, tags: [red]}]", "--router-segments", "shared", "--segment-router", "red="+red, "--segment-router-https", "red="+secure)
	d.PushProbe("probe")
	answersAt(d, d.Addr, "probe.localhost", 200, "")
	answersAt(d, red, "probe.localhost", 404, "unknown_route")
	answersAt(d, red, "api.localhost", 404, "unknown_route")

	var segment struct{ GUID string }
	d.API("POST", "/v3/isolation_segments", e2e.Doc{"name": "red"}, &segment)
	d.API("POST", "/v3/isolation_segments/"+segment.GUID+"/relationships/organizations", e2e.Doc{"data": []e2e.Doc{{"guid": d.First("/v3/organizations")}}}, nil)
	d.API("PATCH", "/v3/spaces/"+d.First("/v3/spaces?names=dev")+"/relationships/isolation_segment", e2e.ToOne(segment.GUID), nil)
	answersAt(d, d.Addr, "probe.localhost", 200, "") // as long as it is not restarted
	d.API("POST", "/v3/apps/"+d.App("probe")+"/actions/restart", nil, nil)
	answersAt(d, red, "probe.localhost", 200, "")
	answersAt(d, d.Addr, "probe.localhost", 404, "unknown_route")
	answersByTLS(d, secure, "probe.localhost")

	d.Kill()
	d.Start()
	answersAt(d, red, "probe.localhost", 200, "")
	answersAt(d, d.Addr, "probe.localhost", 404, "unknown_route")
}

// answersByTLS wants an app, and the system's 404 for the API, at the address of a router
// that speaks TLS with a certificate of the daemon's CA.
func answersByTLS(d *e2e.Daemon, addr, host string) {
	d.T.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dir, "ca.pem"))
	if err != nil {
		d.T.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	for name, want := range map[string]int{host: 200, "api.localhost": 404} {
		e2e.Eventually(d.T, time.Minute, func() string {
			res, err := client.Get("https://" + name + "/")
			if err != nil {
				return err.Error()
			}
			res.Body.Close()
			if res.StatusCode != want {
				return fmt.Sprintf("%s: got %d; want %d", name, res.StatusCode, want)
			}
			return ""
		})
	}
}

// TestStoppedApp answers as gorouter does for the route of an app without instances:
// with its default, 404 at once; with an empty_pool_timeout, 503 until that is over.
func TestStoppedApp(t *testing.T) {
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("my_App") // the host is the name as it is
	app := d.App("my_App")
	answersAt(d, d.Addr, "my_app.localhost", 200, "")
	d.API("POST", "/v3/apps/"+app+"/actions/stop", nil, nil)
	answersAt(d, d.Addr, "my_app.localhost", 404, "unknown_route")
	d.API("POST", "/v3/apps/"+app+"/actions/start", nil, nil)
	answersAt(d, d.Addr, "my_app.localhost", 200, "")

	d.Kill()
	d.Flags = append(d.Flags, "--empty-pool-timeout", "1h")
	d.Start()
	answersAt(d, d.Addr, "my_app.localhost", 200, "")
	d.API("POST", "/v3/apps/"+app+"/actions/stop", nil, nil)
	answersAt(d, d.Addr, "my_app.localhost", 503, "no_endpoints")
	d.API("DELETE", "/v3/routes/"+d.First("/v3/routes?hosts=my_app"), nil, nil)
	answersAt(d, d.Addr, "my_app.localhost", 404, "unknown_route")
}
