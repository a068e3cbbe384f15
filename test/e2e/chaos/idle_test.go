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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestIdleTenant compares how long one tenant's requests take alone, and while
// others attack: they write without a pause, apply a manifest of a thousand apps
// and send bodies that never end. No request may fail; how long they took is
// reported for docs/reliability.md. Alone and attacked take turns, so that an
// hour in which the machine is slow slows both. The machine is as busy in both:
// the processors that the attackers use are not the daemon's fault.
func TestIdleTenant(t *testing.T) {
	t.Parallel()
	requests := int(environ(t, "CUPOLA_IDLE_REQUESTS", 60))
	turns := max(1, requests/100)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	idle := newTenant(d, 0, 1)
	idle.create()
	turn, end := startAttacker(t, d)
	alone, attacked := latencies{}, latencies{}
	for range turns {
		idle.measure(t, alone, requests/turns)
		turn(attacking)
		idle.measure(t, attacked, requests/turns)
		turn(resting)
	}
	end()
	for _, kind := range []string{"reads", "writes"} {
		a, b := alone[kind], attacked[kind]
		t.Logf("%s: alone p50 %v, p95 %v, p99 %v; attacked p50 %v, p95 %v, p99 %v: ratio of p99 %.1f", kind,
			percentile(a, 50), percentile(a, 95), percentile(a, 99), percentile(b, 50), percentile(b, 95), percentile(b, 99), float64(percentile(b, 99))/float64(percentile(a, 99)))
	}
}

func percentile(all []time.Duration, p int) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)*p/100].Round(100 * time.Microsecond)
}

// latencies are how long requests took, by their kind.
type latencies map[string][]time.Duration

// measure adds reads and writes of an app, a few each second.
func (t *tenant) measure(test *testing.T, took latencies, requests int) {
	test.Helper()
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
}

// startAttacker runs TestAttack in a process that gets what processor time all
// others leave, of one processor: attackers have their own machines, and the kernel
// may leave two threads of the daemon on one processor while attackers use another.
// It rests until its first turn.
func startAttacker(t *testing.T, d *e2e.Daemon) (turn func(string), end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("chrt", "--idle", "0", self, "-test.run", "^TestAttack$", "-test.v")
	cmd.Env = append(os.Environ(), attackEnv+"="+d.Addr, "GOMAXPROCS=1")
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
	until := func(state string) {
		for lines.Scan() && lines.Text() != state {
		}
	}
	until(resting)
	turn = func(state string) { _, _ = fmt.Fprintln(in); until(state) }
	return turn, func() {
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
	resting   = "resting"
)

// TestAttack is the attacker of TestIdleTenant. It rests and attacks by turns, one
// line of standard input each, and tells on standard output what it does.
func TestAttack(t *testing.T) {
	addr := os.Getenv(attackEnv)
	if addr == "" {
		t.Skip("only TestIdleTenant runs it, in a process of its own")
	}
	d := &e2e.Daemon{T: t, Addr: addr, Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
	a := newAttacker(d)
	turns := bufio.NewScanner(os.Stdin)
	halt := spin()
	for fmt.Println(resting); turns.Scan(); fmt.Println(resting) {
		halt()
		stop := a.attack()
		fmt.Println(attacking)
		turns.Scan()
		stop()
		halt = spin()
	}
	if err := turns.Err(); err != nil {
		t.Error(err)
	}
}

// spin uses all processor time that others leave to this process, until stop.
func spin() (stop func()) {
	var ended atomic.Bool
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !ended.Load() {
			}
		})
	}
	return func() { ended.Store(true); all.Wait() }
}

// attacker is a tenant that does all it can to keep others waiting.
type attacker struct {
	*tenant
	writers  []*tenant // in its space
	manifest []byte
}

func newAttacker(d *e2e.Daemon) *attacker {
	a := &attacker{tenant: newTenant(d, 1, 2)}
	for n := range 8 {
		a.writers = append(a.writers, &tenant{t: a.t, d: d, name: fmt.Sprintf("%s-%d", a.name, n), space: a.space, client: a.client, rand: rand.New(rand.NewPCG(3, uint64(n))), apps: memory{}})
	}
	var manifest strings.Builder
	manifest.WriteString("applications:\n")
	for n := range 1000 {
		fmt.Fprintf(&manifest, "- name: many-%d\n  default-route: true\n", n)
	}
	a.manifest = []byte(manifest.String())
	return a
}

// attack begins, and stop ends it with what is under way.
func (a *attacker) attack() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, w := range a.writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.change(fmt.Sprint(n))
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			_ = a.client.ApplyManifest(context.WithoutCancel(ctx), a.space, a.manifest) // which it may be too large for
		}
	})
	all.Go(func() {
		c := &chaos{t: a.t.(*testing.T), d: a.d}
		for ctx.Err() == nil {
			slowClients(c)
		}
	})
	return func() { cancel(); all.Wait() }
}
