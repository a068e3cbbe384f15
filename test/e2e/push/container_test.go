package push

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestContainers shows what holds an app, as the app and its user see it.
func TestContainers(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	pushCrasher(d)
	d.PushProbe("probe")
	t.Run("egress", func(t *testing.T) { egressIsHeld(d.On(t)) })
	t.Run("disk quota", func(t *testing.T) { diskIsHeld(d.On(t)) })
	t.Run("out of memory", func(t *testing.T) { memoryIsHeld(d.On(t)) })
	t.Run("zombies", func(t *testing.T) { orphansAreReaped(d.On(t)) })
	t.Run("signals", func(t *testing.T) { endsBySignals(d.On(t)) })
	t.Run("crash policy", func(t *testing.T) { crasherBacksOff(d.On(t)) })
}

// crash is an event of one.
type crash struct {
	CreatedAt time.Time `json:"created_at"`
	Data      struct {
		Index       int
		Reason      string
		Description string `json:"exit_description"`
		Count       int    `json:"crash_count"`
	}
}

// crashes are those of an app, the first one first.
func crashes(d *e2e.Daemon, app string) []crash {
	d.T.Helper()
	var events struct{ Resources []crash }
	d.API("GET", "/v3/audit_events?order_by=created_at&types=app.crash&target_guids="+d.App(app), nil, &events)
	return events.Resources
}

// pushCrasher pushes an app that ends a second after it ran.
func pushCrasher(d *e2e.Daemon) {
	d.T.Helper()
	dir := d.T.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Procfile"), []byte("web: sleep 1; exit 4\n"), 0o600); err != nil {
		d.T.Fatal(err)
	}
	d.Push(dir, `applications:
- name: crasher
  stack: minifs
  buildpacks: [binary_buildpack]
  memory: 32M
  no-route: true
  health-check-type: process
`)
}

// crasherBacksOff wants Diego's policy: the instance is started again at once
// after the first two crashes, and half a minute after the third.
func crasherBacksOff(d *e2e.Daemon) {
	d.T.Helper()
	var all []crash
	e2e.Eventually(d.T, 70*time.Second, func() string {
		if all = crashes(d, "crasher"); len(all) > 3 {
			return ""
		}
		if now := d.Stats("crasher", "web"); len(all) == 3 && now[0].State != "CRASHED" {
			return "the instance is " + now[0].State
		}
		return fmt.Sprintf("%d crashes", len(all))
	})
	for n, c := range all[:4] {
		if c.Data.Reason != "CRASHED" || c.Data.Description != "APP/PROC/WEB: Exited with status 4" {
			d.T.Errorf("crash %d: got %+v", n+1, c.Data)
		}
	}
	if took := all[2].CreatedAt.Sub(all[0].CreatedAt); took > 20*time.Second {
		d.T.Errorf("the third crash came %v after the first; want restarts at once", took)
	}
	if wait := all[3].CreatedAt.Sub(all[2].CreatedAt); wait < 25*time.Second {
		d.T.Errorf("the fourth crash came %v after the third; want half a minute", wait)
	}
	d.Logged("crasher", "Exit status 4")
}

// memoryIsHeld lets the app take memory without end.
func memoryIsHeld(d *e2e.Daemon) {
	d.T.Helper()
	before := d.Running("probe", "web", 1)[0]
	_, _, _ = d.Get("probe.localhost", "/eat")
	e2e.Eventually(d.T, time.Minute, func() string {
		for _, c := range crashes(d, "probe") {
			if c.Data.Description == "APP/PROC/WEB: Exited with status 137 (out of memory)" {
				return ""
			}
		}
		return fmt.Sprintf("got crashes %+v", crashes(d, "probe"))
	})
	d.Logged("probe", "Exit status 137 (out of memory)")
	d.Answers("probe", "ready")
	if now := d.Running("probe", "web", 1)[0]; now.InstanceGUID == before.InstanceGUID {
		d.T.Error("the instance was not replaced")
	}
}

// diskIsHeld lets the app write without end.
func diskIsHeld(d *e2e.Daemon) {
	d.T.Helper()
	_, said, err := d.Get("probe.localhost", "/fill")
	if err != nil {
		d.T.Fatal(err)
	}
	written, reason, _ := strings.Cut(strings.TrimSpace(said), " ")
	bytes, err := strconv.Atoi(written)
	if err != nil || bytes == 0 || bytes > 64<<20 || !strings.Contains(reason, "no space left") && !strings.Contains(reason, "quota exceeded") {
		d.T.Errorf("got %q; want at most 64 MiB, and an error", said)
	}
	d.Answers("probe", "ready")
	if n := len(crashes(d, "probe")); n != 0 {
		d.T.Errorf("got %d crashes", n)
	}
}

// egressIsHeld wants Cloud Foundry's default security groups: public networks
// are reached, private ones, other apps and this machine are not.
func egressIsHeld(d *e2e.Daemon) {
	d.T.Helper()
	t := d.T.(*testing.T)
	o := e2e.NewOutside(t)
	reaches(d, o.Public.String()+":80", true)
	reaches(d, o.Private.String()+":80", false)
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go e2e.Accept(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, ip := range ownAddresses(t) {
		reaches(d, net.JoinHostPort(ip, port), false)
	}
	d.API("POST", "/v3/apps/"+d.App("probe")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	instances := d.Running("probe", "web", 2)
	for i, other := range []int{1, 0} {
		if said := dialFrom(d, i, instances[other].Host+":8080"); said == "reached\n" {
			t.Errorf("instance %d reaches instance %d", i, other)
		}
	}
	d.API("POST", "/v3/apps/"+d.App("probe")+"/processes/web/actions/scale", e2e.Doc{"instances": 1}, nil)
	d.Running("probe", "web", 1)
	opened(d, o.Private.String())
}

// opened makes a security group for an address: it holds at once.
func opened(d *e2e.Daemon, ip string) {
	d.T.Helper()
	rule := e2e.Doc{"protocol": "tcp", "destination": ip, "ports": "80"}
	d.API("POST", "/v3/security_groups", e2e.Doc{"name": "one", "globally_enabled": e2e.Doc{"running": true}, "rules": []e2e.Doc{rule}}, nil)
	d.SoonReaches("probe", ip+":80", true)
}

// dialFrom makes one instance of the probe connect to an address. The router may learn of an
// instance a moment after the API shows it.
func dialFrom(d *e2e.Daemon, index int, addr string) (said string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() (wait string) {
		said, wait = askInstance(d, index, "/dial?to="+addr)
		return wait
	})
	return said
}

// askInstance asks one instance of the probe; fault is why it was not asked.
func askInstance(d *e2e.Daemon, index int, path string) (said, fault string) {
	d.T.Helper()
	req, err := http.NewRequest("GET", "http://"+d.Addr+path, nil)
	if err != nil {
		d.T.Fatal(err)
	}
	req.Host = "probe.localhost"
	req.Header.Set("X-Cf-App-Instance", fmt.Sprintf("%s:%d", d.App("probe"), index))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.T.Fatal(err)
	}
	if fault := res.Header.Get("X-Cf-RouterError"); fault != "" {
		return "", fmt.Sprintf("instance %d did not answer: got %s, %s", index, res.Status, fault)
	}
	return string(text), ""
}

func reaches(d *e2e.Daemon, addr string, want bool) {
	d.T.Helper()
	_, said, err := d.Get("probe.localhost", "/dial?to="+addr)
	if err != nil || (said == "reached\n") != want {
		d.T.Errorf("%s: got %q, %v; want reached %v", addr, said, err, want)
	}
}

// ownAddresses are this machine's but for the loopback, which is another one in
// a container.
func ownAddresses(t *testing.T) (ips []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !slices.Contains(ips, n.IP.String()) {
			ips = append(ips, n.IP.String())
		}
	}
	return ips
}
