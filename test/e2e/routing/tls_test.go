package routing

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// ask sends a request on a connection that stays open.
func ask(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "ready\n" {
		return fmt.Errorf("got %q, %w", body, err)
	}
	return nil
}

// answers connects to a TLS port of an instance and asks it.
func answers(d *e2e.Daemon, i e2e.Instance, port int) (*tls.Conn, error) {
	conn, err := d.DialInstance(i.Host, port, i.InstanceGUID)
	if err != nil {
		return nil, err
	}
	return conn, ask(conn)
}

// TestInstanceTLS speaks TLS to an instance as Diego's router and other apps do, while
// its certificate is replaced, the daemon is killed and hostile clients come.
func TestInstanceTLS(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--instance-cert-life", "24s")
	d.PushProbe("front")
	d.PushProbe("back")
	back := d.Running("back", "web", 1)[0]
	saysTLSPorts(d)
	if pids := proxies(t, d, back); len(pids) > 0 {
		t.Errorf("terminators %v run before a client came", pids)
	}
	conn, err := answers(d, back, 61001)
	if err != nil {
		t.Fatal(err)
	}
	first := conn.ConnectionState().PeerCertificates[0]
	if pids := proxies(t, d, back); len(pids) != 1 {
		t.Errorf("got terminators %v; want one", pids)
	} else if score, err := os.ReadFile(filepath.Join("/proc", pids[0], "oom_score_adj")); err != nil || string(score) != "1000\n" {
		t.Errorf("got %q, %v; want the terminator ended before the app where memory is used up", score, err)
	}
	if _, err := answers(d, back, 61443); err != nil {
		t.Errorf("the port for other containers: %v", err)
	}
	internalTLS(d)
	d.Kill()
	if err := ask(conn); err != nil {
		t.Errorf("a connection, while there is no daemon: %v", err)
	}
	if _, err := answers(d, back, 61001); err != nil {
		t.Errorf("a new connection, while there is no daemon: %v", err)
	}
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		next, err := answers(d, back, 61001)
		if err != nil {
			t.Fatalf("while the certificate is replaced: %v", err)
		}
		if next.ConnectionState().PeerCertificates[0].Equal(first) {
			return "the certificate was not replaced"
		}
		return ""
	})
	if err := ask(conn); err != nil {
		t.Errorf("a connection, after its certificate was replaced: %v", err)
	}
	if said := fetchFrom(d, "https://back.apps.internal:61443/"); said != back.InstanceGUID+": 200 ready\n" {
		t.Errorf("from the other app, with the next certificate: got %q", said)
	}
	hostileTLS(t, d, back)
	if now := d.Running("back", "web", 1)[0]; now.InstanceGUID != back.InstanceGUID {
		t.Error("the app was restarted")
	}
}

// saysTLSPorts compares what an instance and the API say of the ports with Diego's form.
func saysTLSPorts(d *e2e.Daemon) {
	d.T.Helper()
	_, env, err := d.Get("back.localhost", "/env")
	const want = `CF_INSTANCE_PORTS=[{"external":8080,"internal":8080,"external_tls_proxy":61001,"internal_tls_proxy":61001},{"external":8080,"internal":8080,"internal_tls_proxy":61443}]`
	if err != nil || !strings.Contains(env, want+"\n") {
		d.T.Errorf("got %s, %v; want %s", env, err, want)
	}
	var stats struct {
		Resources []struct {
			Ports json.RawMessage `json:"instance_ports"`
		}
	}
	d.API("GET", "/v3/apps/"+d.App("back")+"/processes/web/stats", nil, &stats)
	const ports = `[{"external":8080,"external_tls_proxy_port":61001,"internal":8080,"internal_tls_proxy_port":61001},{"external":8080,"external_tls_proxy_port":null,"internal":8080,"internal_tls_proxy_port":61443}]`
	if got := string(stats.Resources[0].Ports); got != ports {
		d.T.Errorf("the stats: got %s; want %s", got, ports)
	}
}

// proxies are the terminators of an instance, by their PIDs.
func proxies(t *testing.T, d *e2e.Daemon, i e2e.Instance) (pids []string) {
	t.Helper()
	for _, pid := range d.Processes(t) {
		line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		cgroup, _ := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
		if strings.HasPrefix(string(line), "/.cupola/lifecycle\x00proxy") && strings.Contains(string(cgroup), i.InstanceGUID) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// internalTLS has front reach back by its internal route over TLS, where a network policy
// lets it.
func internalTLS(d *e2e.Daemon) {
	d.T.Helper()
	var route struct{ GUID string }
	d.API("POST", "/v3/routes", e2e.Doc{"host": "back", "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces")), "domain": e2e.ToOne(d.First("/v3/domains?names=apps.internal"))}}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": d.App("back")}}}}, nil)
	back := d.Running("back", "web", 1)[0]
	looksUp(d, internal, back.Host)
	const url = "https://back.apps.internal:61443/"
	if said := fetchFrom(d, url); !strings.Contains(said, "refused") && !strings.Contains(said, "deadline exceeded") {
		d.T.Errorf("without a policy: got %q", said)
	}
	policy := e2e.Doc{"policies": []e2e.Doc{{"source": e2e.Doc{"id": d.App("front")}, "destination": e2e.Doc{"id": d.App("back"), "protocol": "tcp", "ports": e2e.Doc{"start": 61443, "end": 61443}}}}}
	d.API("POST", "/networking/v1/external/policies", policy, nil)
	e2e.Eventually(d.T, time.Minute, func() string {
		if said := fetchFrom(d, url); said != back.InstanceGUID+": 200 ready\n" {
			return said
		}
		return ""
	})
	if said := fetchFrom(d, "https://"+back.Host+":61001/"); !strings.Contains(said, "refused") && !strings.Contains(said, "deadline exceeded") {
		d.T.Errorf("at a port of which the policy does not speak: got %q", said)
	}
}

// fetchFrom has front fetch a URL.
func fetchFrom(d *e2e.Daemon, url string) string {
	d.T.Helper()
	_, said, err := d.Get("front.localhost", "/fetch?url="+url)
	if err != nil {
		return err.Error()
	}
	return said
}

// killProxies kills the terminators of an instance, and waits for their end.
func killProxies(t *testing.T, d *e2e.Daemon, i e2e.Instance) {
	t.Helper()
	for _, pid := range proxies(t, d, i) {
		n, err := strconv.Atoi(pid)
		if err == nil {
			err = syscall.Kill(n, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		e2e.Eventually(t, time.Minute, func() string {
			if e2e.Alive(n) {
				return "terminator " + pid + " is there after it was killed"
			}
			return ""
		})
	}
}

// hostileTLS sends an instance's TLS port clients that say nothing, or no TLS, kills the
// terminator, and wants others to be answered all the same.
func hostileTLS(t *testing.T, d *e2e.Daemon, i e2e.Instance) {
	t.Helper()
	for n := range 1500 {
		conn, err := net.DialTimeout("tcp", i.Host+":61001", 10*time.Second)
		if err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
		defer conn.Close()
		if n%2 == 0 {
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
	}
	for range 20 {
		if _, err := answers(d, i, 61001); err != nil {
			t.Fatalf("beside hostile clients: %v", err)
		}
	}
	for range 3 {
		killProxies(t, d, i)
		if _, err := answers(d, i, 61001); err != nil {
			t.Fatalf("after the terminator was killed: %v", err)
		}
		if got := proxies(t, d, i); len(got) != 1 {
			t.Errorf("got terminators %v; want one", got)
		}
	}
}

// TestBackendTLS makes the router speak TLS to instances, which demand its certificate.
func TestBackendTLS(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--instance-tls", "off")
	d.PushProbe("probe")
	older := d.Running("probe", "web", 1)[0]
	if _, err := answers(d, older, 61001); err == nil {
		t.Error("there is a TLS port with --instance-tls off")
	}
	d.Kill()
	d.Flags = []string{"--instance-tls", "mutual", "--backend-tls"}
	d.Start()
	d.Answers("probe", "ready") // an instance that has no TLS ports
	d.RestartApp("probe")
	now := d.Running("probe", "web", 1)[0]
	d.Answers("probe", "ready")
	if got := proxies(t, d, now); len(got) != 1 {
		t.Errorf("got terminators %v; want one, for the router", got)
	}
	if _, err := answers(d, now, 61001); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: got %v", err)
	}
	if _, err := answers(d, now, 61443); err != nil {
		t.Errorf("the port for other containers: %v", err)
	}
	d.Kill()
	d.Start()
	d.Answers("probe", "ready")
	d.PushProbe("other")
	impostor(t, d, now, d.Running("other", "web", 1)[0])
}

// impostor has another instance's certificate shown at an instance's address, as when the
// address was given away: no request may get there.
func impostor(t *testing.T, d *e2e.Daemon, at, other e2e.Instance) {
	t.Helper()
	file := func(i e2e.Instance) string {
		return filepath.Join(d.Dir, "memory", i.InstanceGUID, "proxy", "config.json")
	}
	var own, others map[string]any
	for name, to := range map[string]*map[string]any{file(at): &own, file(other): &others} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	others["Address"] = own["Address"]
	text, err := json.Marshal(others)
	if err == nil {
		err = os.WriteFile(file(at), text, 0) // it is there
	}
	if err != nil {
		t.Fatal(err)
	}
	killProxies(t, d, at) // and with it the router's connections
	for _, want := range []string{"endpoint_failure (tls: failed to verify certificate: x509: certificate is valid for " + other.InstanceGUID + ", not " + at.InstanceGUID + ")", "no_endpoints"} {
		req, err := http.NewRequest("GET", "http://"+d.Addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "probe.localhost"
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("X-Cf-RouterError"); res.StatusCode != 503 || got != want {
			t.Errorf("got %d %s; want 503 %s", res.StatusCode, got, want)
		}
	}
}
