package images

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestStackMigrate brings ten apps from a stack to an image while requests flow
// to each, is cut short on the way, and goes on.
func TestStackMigrate(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	r := e2e.StartRegistry(t)
	buildpack := serveBuildpack(t)
	for _, tag := range []string{"old", "new"} {
		r.Push(t, tag, v1.Config{}, e2e.SmallStack(t, tag))
	}
	image := "docker://" + r.Host + "/stacks/small:"
	if out, err := d.Run("stack", "pull", image+"old", "--name", "old", "--username", e2e.RegistryUser, "--password", e2e.RegistryPassword, "--data-dir", d.Dir); err != nil {
		t.Fatalf("stack pull: %v\n%s", err, out)
	}
	d.API("PATCH", "/v3/feature_flags/diego_custom_stacks", e2e.Doc{"enabled": true}, nil)
	var apps []string
	for n := range 10 {
		apps = append(apps, fmt.Sprintf("mover-%d", n))
	}
	for _, app := range append(apps, "idle") {
		if out, err := d.Run("push", imageApp{app, "old", buildpack}.dir(t, nil)); err != nil { // the apps have no credentials
			t.Fatalf("push %s: %v\n%s", app, err, out)
		}
	}
	d.API("POST", "/v3/apps/"+d.App("idle")+"/actions/stop", nil, nil)
	if out, err := d.Run("stack", "rm", "old", "--data-dir", d.Dir); err == nil || !strings.Contains(out, "mover-3") {
		t.Errorf("stack rm: got %v; want it refused with who uses it\n%s", err, out)
	}
	if out, err := d.Run("stack", "migrate", "--from", "old", "--to", image+"new", "--dry-run"); err != nil || strings.Count(out, "\n") != 12 {
		t.Errorf("dry run: got %v\n%s", err, out)
	}

	migrate := []string{"stack", "migrate", "--from", "old", "--to", image + "new", "--parallel", "3"}
	if out, err := d.Run(append(migrate, "--registry-username", e2e.RegistryUser)...); err == nil || !strings.Contains(out, "CUPOLA_REGISTRY_PASSWORD") {
		t.Errorf("without a password: got %v\n%s", err, out)
	}
	migrate = append(migrate, "--credentials", fmt.Sprintf(`{"127.0.0.1": {"username": %q, "password": %q}}`, e2e.RegistryUser, e2e.RegistryPassword))
	stop := constantly(d, apps)
	cutShort(d, migrate...)
	out, err := d.Run(migrate...)
	if err != nil {
		t.Errorf("stack migrate: %v\n%s", err, out)
	}
	var idle struct{ Stack string }
	d.API("GET", "/v3/apps/"+d.App("idle")+"/droplets/current", nil, &idle)
	if idle.Stack != image+"new" {
		t.Errorf("the stopped app's droplet is of %q; want it restaged on %q", idle.Stack, image+"new")
	}
	sent, failures := stop()
	t.Logf("%d requests\n%s", sent, out)
	if len(failures) > 0 || sent < enough {
		t.Errorf("%d of %d requests failed: %q", len(failures), sent, failures[:min(len(failures), 5)])
	}
	for _, app := range apps {
		d.Running(app, "web", 1)
		d.Logged(app, "sidecar on NAME=new")
	}
	if out, err := d.Run("stack", "rm", "old", "--data-dir", d.Dir); err != nil {
		t.Errorf("stack rm: %v\n%s", err, out)
	}
	if out, err := d.Run("stack", "migrate", "--from", "old", "--to", image+"new"); err != nil || !strings.Contains(out, "No app") {
		t.Errorf("once more: got %v\n%s", err, out)
	}
}

// cutShort runs cupola, and kills it when the first app is done.
func cutShort(d *e2e.Daemon, args ...string) {
	d.T.Helper()
	cmd := exec.Command(d.Binary, args...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "rolled"); {
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// enough is how many requests stop waits for.
const enough = 100

// constantly asks each app through the router, until stop is called and enough are sent: seldom enough that the logs keep what else they have.
func constantly(d *e2e.Daemon, apps []string) (stop func() (sent int64, failures []string)) {
	ctx, cancel := context.WithCancel(context.Background())
	var (
		mu   sync.Mutex
		bad  []string
		n    atomic.Int64
		each sync.WaitGroup
	)
	for _, app := range apps {
		each.Go(func() {
			for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				status, body, err := d.Get(app+".localhost", "/")
				n.Add(1)
				if err != nil || status != 200 {
					mu.Lock()
					bad = append(bad, fmt.Sprint(app, status, body, err))
					mu.Unlock()
				}
			}
		})
	}
	return func() (int64, []string) {
		for until := time.Now().Add(time.Minute); n.Load() < enough && time.Now().Before(until); {
			time.Sleep(100 * time.Millisecond)
		}
		cancel()
		each.Wait()
		return n.Load(), bad
	}
}
