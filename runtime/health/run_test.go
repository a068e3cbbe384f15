package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

var address = netip.MustParseAddr("10.1.2.3")

// refused is the kernel's error for a port without a listener.
func refused(network, address string) error {
	a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	return &net.OpError{Op: "dial", Net: network, Addr: a, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// between accepts connections from `from` to `to` after the start.
func between(from, to time.Duration) dialFunc {
	began := time.Now()
	return func(_ context.Context, network, address string) (net.Conn, error) {
		if at := time.Since(began); at < from || at >= to {
			return nil, refused(network, address)
		}
		a, b := net.Pipe()
		b.Close()
		return a, nil
	}
}

func hang(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// observe runs spec for d and returns its events and lines as text.
func observe(spec Spec, dial dialFunc, d time.Duration) (events, lines []string) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	spec.Address = address
	spec.Log = func(l Line) { lines = append(lines, fmt.Sprintf("%s %t %s", l.Source, l.Err, l.Text)) }
	run(ctx, &spec, dial, func(e Event) {
		events = append(events, fmt.Sprintf("%s %s %s", e.At.Sub(began), e.Type, e.Reason))
	})
	return events, lines
}

func TestRunEvents(t *testing.T) {
	port := lrp.Check{Type: lrp.CheckPort, Port: 8080}
	never := time.Hour
	tests := []struct {
		name   string
		spec   Spec
		dial   func() dialFunc
		events []string
	}{
		{"process check", Spec{}, func() dialFunc { return hang }, []string{"0s healthy ", "0s ready "}},
		{"at once", Spec{Checks: live(port)}, func() dialFunc { return between(0, never) }, []string{"0s healthy ", "0s ready "}},
		{"second probe", Spec{Checks: live(port)}, func() dialFunc { return between(time.Millisecond, never) }, []string{"10ms healthy ", "10ms ready "}},
		{"slow start", Spec{Checks: live(port)}, func() dialFunc { return between(5*time.Second, never) }, []string{"5.13s healthy ", "5.13s ready "}},
		{"becomes unhealthy", Spec{Checks: live(port)}, func() dialFunc { return between(0, 45*time.Second) }, []string{"0s healthy ", "0s ready ",
			"1m0s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"own interval", Spec{Checks: live(lrp.Check{Type: lrp.CheckPort, Port: 80, Interval: 3 * time.Second})}, func() dialFunc { return between(0, 4*time.Second) }, []string{"0s healthy ", "0s ready ",
			"6s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:80: dial tcp 10.1.2.3:80: connect: connection refused"}},
		{"third failure", Spec{Checks: live(lrp.Check{Type: lrp.CheckPort, Port: 80, Interval: 3 * time.Second, Failures: 3})}, func() dialFunc { return between(0, 4*time.Second) }, []string{"0s healthy ", "0s ready ",
			"12s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:80: dial tcp 10.1.2.3:80: connect: connection refused"}},
		{"second success, after a delay", Spec{Checks: lrp.CheckDefinition{Readiness: []lrp.Check{{Type: lrp.CheckPort, Port: 80, Interval: 3 * time.Second, InitialDelay: 5 * time.Second, Successes: 2}}}},
			func() dialFunc { return between(0, never) }, []string{"0s healthy ", "8s ready "}},
		{"never healthy", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() dialFunc { return between(never, never) }, []string{
			"3s never-healthy Instance never healthy after 3s: Timed out after 3s (11 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"hangs", Spec{Checks: live(port), StartTimeout: 2500 * time.Millisecond}, func() dialFunc { return hang }, []string{
			"2.5s never-healthy Instance never healthy after 2.5s: Timed out after 2.5s (3 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:8080: timed out after 1.00 seconds"}},
		{"adopted and ill", Spec{Checks: live(port), Healthy: true}, func() dialFunc { return between(never, never) }, []string{"0s healthy ", "0s ready ",
			"30s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"readiness comes and goes", Spec{Checks: lrp.CheckDefinition{Readiness: []lrp.Check{port}}}, func() dialFunc { return between(time.Second, 40*time.Second) }, []string{"0s healthy ", "1.13s ready ",
			"1m1.13s not-ready Readiness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"adopted while it starts", Spec{Checks: live(port), StartTimeout: 3 * time.Second, Waited: 2 * time.Second}, func() dialFunc { return between(never, never) }, []string{
			"1s never-healthy Instance never healthy after 3s: Timed out after 3s (7 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"both of two", Spec{Checks: live(port, lrp.Check{Type: lrp.CheckPort, Port: 81, Interval: time.Second})}, func() dialFunc { return late("10.1.2.3:81", time.Second, 5*time.Second) }, []string{"1.13s healthy ", "1.13s ready ",
			"5.13s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:81: dial tcp 10.1.2.3:81: connect: connection refused"}},
		// All that failed are named: executor, depot/steps/{parallel,codependent}_step.go.
		{"none of two", Spec{Checks: live(port, lrp.Check{Type: lrp.CheckPort, Port: 81}), StartTimeout: 3 * time.Second}, func() dialFunc { return between(never, never) }, []string{
			"3s never-healthy Instance never healthy after 3s: " +
				"Timed out after 3s (11 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused; " +
				"Timed out after 3s (11 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:81: dial tcp 10.1.2.3:81: connect: connection refused"}},
		{"one of two never", Spec{Checks: live(port, lrp.Check{Type: lrp.CheckPort, Port: 81}), StartTimeout: 3 * time.Second}, func() dialFunc { return late("10.1.2.3:81", never, never) }, []string{
			"3s never-healthy Instance never healthy after 3s: Timed out after 3s (11 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:81: dial tcp 10.1.2.3:81: connect: connection refused"}},
		{"both of two turn bad", Spec{Checks: live(port, lrp.Check{Type: lrp.CheckPort, Port: 81, Interval: 7 * time.Second})}, func() dialFunc { return between(0, 5*time.Second) }, []string{"0s healthy ", "0s ready ",
			"7s unhealthy Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:81: dial tcp 10.1.2.3:81: connect: connection refused; " +
				"Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"monitor", Spec{Monitor: says("ill", time.Second, 40*time.Second)}, func() dialFunc { return hang }, []string{"1.27s healthy ", "1.27s ready ", "1m1.27s unhealthy Instance became unhealthy: ill"}},
		{"monitor is never content", Spec{Monitor: says("ill", never, never), StartTimeout: 5 * time.Second}, func() dialFunc { return hang }, []string{"5s never-healthy Instance never healthy after 5s: ill"}},
		{"checks before the monitor", Spec{Checks: live(port), Monitor: says("ill", never, never)}, func() dialFunc { return between(0, never) }, []string{"0s healthy ", "0s ready "}},
		{"active for a while", Spec{Checks: roles(port)}, func() dialFunc { return between(10*time.Second, 40*time.Second) }, []string{"0s healthy ", "0s passive ", "0s ready ", "30s active ",
			"1m0s passive failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"adopted, active", Spec{Checks: roles(port), Healthy: true, Active: true}, func() dialFunc { return between(never, never) }, []string{"0s healthy ", "0s ready ",
			"30s passive failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"adopted, and ready no longer", Spec{Checks: lrp.CheckDefinition{Readiness: []lrp.Check{port}}, Healthy: true, Ready: true}, func() dialFunc { return between(never, never) }, []string{"0s healthy ",
			"30s not-ready Readiness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"}},
		{"no start timeout", Spec{Checks: live(port)}, func() dialFunc { return between(never, never) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, _ := observe(tt.spec, tt.dial(), 2*time.Minute)
				if diff := cmp.Diff(tt.events, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRunLines(t *testing.T) {
	port := lrp.Check{Type: lrp.CheckPort, Port: 8080}
	synctest.Test(t, func(t *testing.T) {
		_, got := observe(Spec{Checks: live(port), StartTimeout: time.Second}, hang, time.Minute)
		want := []string{
			"CELL false Starting health monitoring of container",
			"HEALTH true Timed out after 1s (1 attempts) waiting for startup check to succeed: failed to make TCP connection to 10.1.2.3:8080: timed out after 1.00 seconds",
			"CELL true Failed after 1s: startup health check never passed.",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("never healthy (-want +got):\n%s", diff)
		}
		_, got = observe(Spec{Checks: live(port)}, between(0, time.Second), time.Minute)
		want = []string{
			"CELL false Starting health monitoring of container",
			"CELL false Container became healthy",
			"HEALTH true Liveness check unsuccessful: failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused",
			"CELL true Container became unhealthy",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unhealthy (-want +got):\n%s", diff)
		}
	})
}

func TestRunEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(ctx, &Spec{Address: address, Checks: live(lrp.Check{Type: lrp.CheckPort})}, hang, func(e Event) { t.Errorf("got event %v; want none", e) })
		}()
		synctest.Wait()
		cancel(errors.New("stopped"))
		<-done
	})
}

// late is between for one address, and accepts at any time at others.
func late(at string, from, to time.Duration) dialFunc {
	dial, always := between(from, to), between(0, time.Hour)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == at {
			return dial(ctx, network, address)
		}
		return always(ctx, network, address)
	}
}

// says is a monitor that is content between from and to after its first asking.
func says(text string, from, to time.Duration) func(context.Context) error {
	var began time.Time
	return func(context.Context) error {
		if began.IsZero() {
			began = time.Now()
		}
		if at := time.Since(began); at < from || at >= to {
			return errors.New(text)
		}
		return nil
	}
}

// live watches by liveness checks alone.
func live(all ...lrp.Check) lrp.CheckDefinition { return lrp.CheckDefinition{Liveness: all} }

// roles tells who is active by a check.
func roles(c lrp.Check) lrp.CheckDefinition { return lrp.CheckDefinition{Active: []lrp.Check{c}} }

func TestExec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answers := func(_ context.Context, r lrp.Run) error {
			if at := time.Since(began); at > 10*time.Second && at < 25*time.Second {
				return errors.New(r.Path + " says no")
			}
			return nil
		}
		check := lrp.Check{Type: lrp.CheckExec, Run: &lrp.Run{Path: "look"}, Interval: 10 * time.Second}
		got, _ := observe(Spec{Exec: answers, Checks: lrp.CheckDefinition{Readiness: []lrp.Check{check}}}, hang, 40*time.Second)
		want := []string{"0s healthy ", "0s ready ", "20s not-ready Readiness check unsuccessful: look says no"}
		if len(got) < 4 || !cmp.Equal(want, got[:3]) || got[3][len(got[3])-6:] != "ready " {
			t.Errorf("got %q; want %q and ready again", got, want)
		}
		late := func(ctx context.Context, _ lrp.Run) error {
			<-ctx.Done()
			return errors.New("cancelled")
		}
		got, _ = observe(Spec{Exec: late, StartTimeout: 2500 * time.Millisecond, Checks: live(check)}, hang, 10*time.Second)
		if len(got) != 1 || !strings.Contains(got[0], "look timed out after 1.00 seconds") {
			t.Errorf("got %q; want it to time out", got)
		}
	})
}
