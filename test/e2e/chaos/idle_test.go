package chaos

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestIdleTenant compares how long one tenant's requests take alone, and while
// others attack: they write without a pause, apply a manifest of a thousand apps
// and send bodies that never end. No request may fail; how long they took is
// reported for docs/reliability.md.
func TestIdleTenant(t *testing.T) {
	t.Parallel()
	requests := int(environ(t, "CUPOLA_IDLE_REQUESTS", 60))
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	idle := newTenant(d, 0, 1)
	idle.create()
	alone := idle.latencies(t, requests)
	stop := startAttack(t, d)
	attacked := idle.latencies(t, requests)
	stop()
	for _, kind := range []string{"reads", "writes"} {
		a, b := alone[kind], attacked[kind]
		t.Logf("%s: alone p50 %v, p99 %v; attacked p50 %v, p99 %v: ratio of p99 %.1f", kind,
			percentile(a, 50), percentile(a, 99), percentile(b, 50), percentile(b, 99), float64(percentile(b, 99))/float64(percentile(a, 99)))
	}
}

func percentile(all []time.Duration, p int) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)*p/100].Round(100 * time.Microsecond)
}

// latencies are those of reads and writes of an app, a few each second.
func (t *tenant) latencies(test *testing.T, requests int) map[string][]time.Duration {
	test.Helper()
	took := map[string][]time.Duration{}
	app := t.apps[t.existing()[0]]
	timed := func(kind string, f func() error) {
		began := time.Now()
		if err := f(); err != nil {
			test.Errorf("%s of the idle tenant: %v", kind, err)
		}
		took[kind] = append(took[kind], time.Since(began))
	}
	ctx := context.Background()
	for n := range requests {
		timed("reads", func() error { return t.client.Call(ctx, "GET", "/v3/apps/"+app.guid, nil, nil) })
		timed("writes", func() error {
			return t.client.Call(ctx, "PATCH", "/v3/apps/"+app.guid, e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"n": fmt.Sprint(n)}}}, nil)
		})
		<-time.After(20 * time.Millisecond)
	}
	return took
}

// startAttack runs TestAttack in a process that gets what processor time all others
// leave: attackers have machines of their own.
func startAttack(t *testing.T, d *e2e.Daemon) (stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nice", "-n", "19", self, "-test.run", "^TestAttack$", "-test.v")
	cmd.Env = append(os.Environ(), attackEnv+"="+d.Addr)
	var out bytes.Buffer
	cmd.Stderr = &out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.TeeReader(said, &out))
	for lines.Scan() && lines.Text() != attacking {
	}
	return func() {
		_ = in.Close()
		for lines.Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("attack: %v\n%s", err, &out)
		}
	}
}

const (
	attackEnv = "CUPOLA_ATTACK" // host:port of the daemon
	attacking = "attacking"
)

// TestAttack is the attacker of TestIdleTenant, until its standard input ends.
func TestAttack(t *testing.T) {
	addr := os.Getenv(attackEnv)
	if addr == "" {
		t.Skip("only TestIdleTenant runs it, in a process of its own")
	}
	d := &e2e.Daemon{T: t, Addr: addr, Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
	stop := newTenant(d, 1, 2).attack(d)
	fmt.Println(attacking)
	_, err := io.Copy(io.Discard, os.Stdin)
	stop()
	if err != nil {
		t.Error(err)
	}
}

// attack does all that a tenant can to keep others waiting, until stop.
func (t *tenant) attack(d *e2e.Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for n := range 8 {
		one := &tenant{t: t.t, d: d, name: fmt.Sprintf("%s-%d", t.name, n), space: t.space, client: t.client, rand: rand.New(rand.NewPCG(3, uint64(n))), apps: memory{}}
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				one.change(fmt.Sprint(n))
			}
		})
	}
	all.Go(func() {
		var manifest strings.Builder
		manifest.WriteString("applications:\n")
		for n := range 1000 {
			fmt.Fprintf(&manifest, "- name: many-%d\n  default-route: true\n", n)
		}
		for ctx.Err() == nil {
			_ = t.client.ApplyManifest(ctx, t.space, []byte(manifest.String())) // which it may be too large for
		}
	})
	all.Go(func() {
		c := &chaos{t: t.t.(*testing.T), d: d}
		for ctx.Err() == nil {
			slowClients(c)
		}
	})
	return func() { cancel(); all.Wait() }
}
