package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// probeManifest runs testdata/probe on the stack that is on every machine.
const probeManifest = `applications:
- name: %s
  stack: minifs
  buildpacks: [binary_buildpack]
  command: ./probe
  memory: 64M
  disk_quota: 64M
`

// pushProbe builds testdata/probe and pushes it.
func (d *daemon) pushProbe(name string) {
	d.t.Helper()
	dir := d.t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	d.push(dir, fmt.Sprintf(probeManifest, name))
	d.answers(name, "ready")
}

// push pushes a directory with a manifest.
func (d *daemon) push(dir, manifest string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if out, err := d.run("push", dir); err != nil {
		d.t.Fatalf("push: %v\n%s", err, out)
	}
}

// TestContainers shows what holds an app, as the app and its user see it.
func TestContainers(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.pushCrasher()
	d.pushProbe("probe")
	t.Run("egress", func(t *testing.T) { d.on(t).egressIsHeld() })
	t.Run("disk quota", func(t *testing.T) { d.on(t).diskIsHeld() })
	t.Run("out of memory", func(t *testing.T) { d.on(t).memoryIsHeld() })
	t.Run("zombies", func(t *testing.T) { d.on(t).orphansAreReaped() })
	t.Run("signals", func(t *testing.T) { d.on(t).endsBySignals() })
	t.Run("crash policy", func(t *testing.T) { d.on(t).crasherBacksOff() })
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
func (d *daemon) crashes(app string) []crash {
	d.t.Helper()
	var events struct{ Resources []crash }
	d.api("GET", "/v3/audit_events?order_by=created_at&types=app.crash&target_guids="+d.app(app), nil, &events)
	return events.Resources
}

// pushCrasher pushes an app that ends a second after it ran.
func (d *daemon) pushCrasher() {
	d.t.Helper()
	dir := d.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Procfile"), []byte("web: sleep 1; exit 4\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.push(dir, `applications:
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
func (d *daemon) crasherBacksOff() {
	d.t.Helper()
	var all []crash
	eventually(d.t, 70*time.Second, func() string {
		if all = d.crashes("crasher"); len(all) > 3 {
			return ""
		}
		if now := d.stats("crasher", "web"); len(all) == 3 && now[0].State != "CRASHED" {
			return "the instance is " + now[0].State
		}
		return fmt.Sprintf("%d crashes", len(all))
	})
	for n, c := range all[:4] {
		if c.Data.Reason != "CRASHED" || c.Data.Description != "APP/PROC/WEB: Exited with status 4" {
			d.t.Errorf("crash %d: got %+v", n+1, c.Data)
		}
	}
	if took := all[2].CreatedAt.Sub(all[0].CreatedAt); took > 20*time.Second {
		d.t.Errorf("the third crash came %v after the first; want restarts at once", took)
	}
	if wait := all[3].CreatedAt.Sub(all[2].CreatedAt); wait < 25*time.Second {
		d.t.Errorf("the fourth crash came %v after the third; want half a minute", wait)
	}
	d.logged("crasher", "Exit status 4")
}

// memoryIsHeld lets the app take memory without end.
func (d *daemon) memoryIsHeld() {
	d.t.Helper()
	before := d.running("probe", "web", 1)[0]
	_, _, _ = d.get("probe.localhost", "/eat")
	eventually(d.t, 30*time.Second, func() string {
		for _, c := range d.crashes("probe") {
			if c.Data.Description == "APP/PROC/WEB: Exited with status 137 (out of memory)" {
				return ""
			}
		}
		return fmt.Sprintf("got crashes %+v", d.crashes("probe"))
	})
	d.logged("probe", "Exit status 137 (out of memory)")
	d.answers("probe", "ready")
	if now := d.running("probe", "web", 1)[0]; now.InstanceGUID == before.InstanceGUID {
		d.t.Error("the instance was not replaced")
	}
}

// diskIsHeld lets the app write without end.
func (d *daemon) diskIsHeld() {
	d.t.Helper()
	_, said, err := d.get("probe.localhost", "/fill")
	if err != nil {
		d.t.Fatal(err)
	}
	written, reason, _ := strings.Cut(strings.TrimSpace(said), " ")
	bytes, err := strconv.Atoi(written)
	if err != nil || bytes == 0 || bytes > 64<<20 || !strings.Contains(reason, "no space left") && !strings.Contains(reason, "quota exceeded") {
		d.t.Errorf("got %q; want at most 64 MiB, and an error", said)
	}
	d.answers("probe", "ready")
	if n := len(d.crashes("probe")); n != 0 {
		d.t.Errorf("got %d crashes", n)
	}
}

// egressIsHeld wants Cloud Foundry's default security groups: public networks
// are reached, private ones, other apps and this machine are not.
func (d *daemon) egressIsHeld() {
	d.t.Helper()
	t := d.t.(*testing.T)
	o := newOutside(t)
	d.reaches(o.public.String()+":80", true)
	d.reaches(o.private.String()+":80", false)
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go accept(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, ip := range ownAddresses(t) {
		d.reaches(net.JoinHostPort(ip, port), false)
	}
	d.api("POST", "/v3/apps/"+d.app("probe")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	for _, i := range d.running("probe", "web", 2) {
		if _, said, _ := d.get("probe.localhost", "/dial?to="+i.Host+":8080"); said != "reached\n" {
			continue // not the one that answered
		}
		d.reaches(i.Host+":8080", false)
	}
	d.api("POST", "/v3/apps/"+d.app("probe")+"/processes/web/actions/scale", doc{"instances": 1}, nil)
	d.running("probe", "web", 1)
	d.opened(o.private.String())
}

// opened makes a security group for an address: it holds at once.
func (d *daemon) opened(ip string) {
	d.t.Helper()
	rule := doc{"protocol": "tcp", "destination": ip, "ports": "80"}
	d.api("POST", "/v3/security_groups", doc{"name": "one", "globally_enabled": doc{"running": true}, "rules": []doc{rule}}, nil)
	d.soonReaches("probe", ip+":80", true)
}

// soonReaches wants an app to reach an address, or not, 5 s from now at last.
func (d *daemon) soonReaches(app, addr string, want bool) {
	d.t.Helper()
	eventually(d.t, 5*time.Second, func() string {
		_, said, err := d.get(app+".localhost", "/dial?to="+addr)
		if err == nil && (said == "reached\n") == want {
			return ""
		}
		return fmt.Sprintf("%s from %s: got %q, %v; want reached %v", addr, app, said, err, want)
	})
}

func (d *daemon) reaches(addr string, want bool) {
	d.t.Helper()
	_, said, err := d.get("probe.localhost", "/dial?to="+addr)
	if err != nil || (said == "reached\n") != want {
		d.t.Errorf("%s: got %q, %v; want reached %v", addr, said, err, want)
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
