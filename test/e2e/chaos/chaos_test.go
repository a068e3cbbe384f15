package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// chaosRounds is how many faults CI brings about, one of each kind; `make chaos`
// asks for more.
const chaosRounds = 10

// TestChaos makes random changes as three tenants while one fault after the
// other hits the daemon. After each fault everything that was acknowledged must
// be there, and an untouched app must run on in the same containers.
// In the end nothing has leaked.
//
// CUPOLA_CHAOS_SEED repeats a run as far as chance allows; CUPOLA_CHAOS_ROUNDS
// says how many faults there are, and CUPOLA_CHAOS_FAULTS, a regular expression,
// of which kinds.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := environ(t, "CUPOLA_CHAOS_SEED", uint64(time.Now().UnixNano()))
	rounds := int(environ(t, "CUPOLA_CHAOS_ROUNDS", chaosRounds))
	t.Logf("CUPOLA_CHAOS_SEED=%d CUPOLA_CHAOS_ROUNDS=%d", seed, rounds)
	c := startChaos(t, rand.New(rand.NewPCG(seed, 1)))
	order := c.order(rounds)
	for n, f := range order {
		c.work(n)
		began := time.Now()
		f.hit(c)
		c.settled()
		t.Logf("round %d: %s: %d acknowledged so far, %d of %d requests refused; round took %v",
			n, f.name, c.acknowledged(), c.refused(), c.asked(), time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
	c.report(order)
}

// environ is a number of the environment, or the default.
func environ(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), strconv.FormatUint(otherwise, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// chaos is a daemon on its own disk, and its users.
type chaos struct {
	t         *testing.T
	rand      *rand.Rand
	d         *e2e.Daemon
	metrics   string // where the daemon tells its metrics
	disk      *e2e.LoopDisk
	tenants   []*tenant
	untouched []string // GUIDs of the instances of the untouched app
	restarts  int      // how often the daemon was killed and started
}

// bystanderApp is the untouched app.
const bystanderApp = "hello-static"

// startChaos starts a daemon whose data directory is a file system in a file,
// with an app that runs and three tenants.
func startChaos(t *testing.T, r *rand.Rand) *chaos {
	disk := e2e.NewLoopDisk(t, 16<<30) // sparse, and with room for two stagings and what runs
	metrics := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := disk.Start("--metrics", metrics)
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	c := &chaos{t: t, rand: r, d: d, metrics: metrics, disk: disk}
	c.untouched = e2e.GUIDs(d.Running(bystanderApp, "web", 1))
	for n := range 3 {
		c.tenants = append(c.tenants, newTenant(d, n, r.Uint64()))
	}
	return c
}

// order is which fault each round has: every kind as often as any other, in a
// random order.
func (c *chaos) order(rounds int) (order []chaosFault) {
	kinds := slices.DeleteFunc(slices.Clone(chaosFaults), func(f chaosFault) bool {
		return !regexp.MustCompile(os.Getenv("CUPOLA_CHAOS_FAULTS")).MatchString(f.name)
	})
	if len(kinds) == 0 {
		c.t.Fatalf("CUPOLA_CHAOS_FAULTS=%s matches no kind of fault", os.Getenv("CUPOLA_CHAOS_FAULTS"))
	}
	for len(order) < rounds {
		next := slices.Clone(kinds)
		c.rand.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		order = append(order, next...)
	}
	return order[:rounds]
}

// work lets the tenants change things beside each other until the fault, which
// comes at any moment of what they do.
func (c *chaos) work(round int) {
	for _, t := range c.tenants {
		t.begin(round)
	}
	<-time.After(200*time.Millisecond + time.Duration(c.rand.Int64N(int64(800*time.Millisecond))))
}

// settled stops the tenants and holds that all is as it was acknowledged.
func (c *chaos) settled() {
	c.t.Helper()
	for _, t := range c.tenants {
		t.end()
	}
	for _, t := range c.tenants {
		t.resolve(t.check(c.d, t.remembers()))
	}
	c.answers(c.d)
	if now := e2e.GUIDs(c.d.Running(bystanderApp, "web", len(c.untouched))); !slices.Equal(now, c.untouched) {
		c.t.Errorf("the untouched app has instances %v; want %v", now, c.untouched)
	}
}

// resources is what a daemon takes of the machine that is not to grow.
type resources struct{ goroutines, descriptors float64 }

func (c *chaos) resources() resources {
	pid := strconv.Itoa(c.d.Cmd.Process.Pid)
	return resources{metric(c.t, c.metrics, "go_goroutines"), descriptors(c.t, pid, filepath.Join(c.d.Dir, "logs"))}
}

// taken is what requests and what is done beside them may take at a moment.
const taken = 40

// givesBack waits until the daemon takes no more than it did before.
func (c *chaos) givesBack(before resources) {
	c.t.Helper()
	e2e.Eventually(c.t, time.Minute, func() string {
		now := c.resources()
		if now.goroutines <= before.goroutines+taken && now.descriptors <= before.descriptors+taken {
			return ""
		}
		return fmt.Sprintf("the daemon has %+v; it had %+v", now, before)
	})
}

// answers waits until the bystander's page is there.
func (c *chaos) answers(d *e2e.Daemon) {
	c.t.Helper()
	e2e.Eventually(c.t, time.Minute, func() string {
		status, body, err := d.Get(bystanderApp+".localhost", "/")
		if err == nil && status == 200 {
			return ""
		}
		return fmt.Sprint(bystanderApp, ": ", status, " ", body, " ", err)
	})
}

func (c *chaos) acknowledged() (n int) {
	for _, t := range c.tenants {
		n += t.acknowledged
	}
	return n
}

func (c *chaos) refused() (n int) {
	for _, t := range c.tenants {
		n += t.refused
	}
	return n
}

func (c *chaos) asked() (n int) {
	for _, t := range c.tenants {
		n += t.asked
	}
	return n
}

// report says what held, for docs/reliability.md.
func (c *chaos) report(order []chaosFault) {
	times := map[string]int{}
	for _, f := range order {
		times[f.name]++
	}
	c.t.Logf("%d faults %v: %d acknowledged changes, none lost; %d restarts", len(order), times, c.acknowledged(), c.restarts)
}
