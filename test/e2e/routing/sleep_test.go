package routing

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestSleep lets an app sleep, frozen and stopped, and wakes it in every way. The last
// sleep is left to the clean-up.
func TestSleep(t *testing.T) {
	t.Parallel()
	port := loopback.FreePorts(t, 1)[0]
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--tcp", fmt.Sprintf("127.0.0.1:%d", port))
	d.PushProbe("probe")
	badLabel(d, t)
	label(d, "1s", "off")
	asleep(d)
	wakesByRequests(d, t)
	wakesByConnection(d, t, port)
	wakesBySSH(d, t)
	keptAwakeByWebsocket(d, t)
	sleepsThroughKill(d, t)
	wakesByScale(d)
	startsAgainWhenKilled(d, t)
	stopsAndStarts(d, t)
	label(d, "1s", "off")
	d.Answers("probe", "ready")
	asleep(d)
	other := asleepAndDeleted(d, t)
	asleep(d)
	if got := d.Containers(); slices.Contains(got, other) {
		t.Errorf("got containers %v; want that of the deleted app gone", got)
	}
}

// TestQuotaOfSleepers has two apps in a space whose quota has memory for one: the second
// starts while the first sleeps, which wakes all the same.
func TestQuotaOfSleepers(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--quota-awake-only")
	d.PushProbe("probe")
	d.PushProbe("other")
	d.API("POST", "/v3/apps/"+d.App("other")+"/actions/stop", nil, nil)
	var web struct {
		Memory int `json:"memory_in_mb"`
	}
	d.API("GET", "/v3/apps/"+d.App("probe")+"/processes/web", nil, &web)
	var spaces struct {
		Resources []struct {
			GUID          string
			Relationships struct{ Organization e2e.Doc }
		}
	}
	d.API("GET", "/v3/spaces", nil, &spaces)
	space := spaces.Resources[0]
	d.API("POST", "/v3/space_quotas", e2e.Doc{"name": "one", "apps": e2e.Doc{"total_memory_in_mb": web.Memory}, "relationships": e2e.Doc{
		"organization": space.Relationships.Organization, "spaces": e2e.Doc{"data": []e2e.Doc{{"guid": space.GUID}}}}}, nil)
	start := func() error {
		return d.Client().Call(t.Context(), "POST", "/v3/apps/"+d.App("other")+"/actions/start", nil, nil)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), "memory space_quota_exceeded") {
		t.Errorf("got %v; want the quota to be exceeded", err)
	}
	label(d, "1s", "off")
	asleep(d)
	if err := start(); err != nil {
		t.Fatal(err)
	}
	d.Answers("other", "ready")
	asked(d, t, "/")
}

// label says when the app sleeps.
func label(d *e2e.Daemon, after, stopAfter string) {
	d.T.Helper()
	d.API("PATCH", "/v3/apps/"+d.App("probe"), e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"cupola.dev/sleep-after": after, "cupola.dev/sleep-stop-after": stopAfter}}}, nil)
}

func badLabel(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	err := d.Client().Call(t.Context(), "PATCH", "/v3/apps/"+d.App("probe"), e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"cupola.dev/sleep-after": "soon"}}}, nil)
	want := "'soon' of 'cupola.dev/sleep-after' must be a time from 1s to 8760h, like 10m, or off"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
}

// asleep waits until all instances of the app sleep.
func asleep(d *e2e.Daemon) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		list := d.Stats("probe", "web")
		if len(list) > 0 && !slices.ContainsFunc(list, func(i e2e.Instance) bool { return i.State != "SLEEPING" }) {
			return ""
		}
		return fmt.Sprintf("not all instances sleep: %+v", list)
	})
}

// asked asks the app, and fails unless it answers.
func asked(d *e2e.Daemon, t *testing.T, path string) (took time.Duration) {
	t.Helper()
	began := time.Now()
	if status, body, err := d.Get("probe.localhost", path); err != nil || status != 200 || body != "ready\n" {
		t.Errorf("got %d %q, %v; want the app to answer", status, body, err)
	}
	return time.Since(began)
}

// wakesByRequests wakes a frozen app by a request that is forwarded directly, and by one
// that net/http forwards, since its head is long.
func wakesByRequests(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	before := d.Processes(t)
	for path, way := range map[string]string{"/": "direct", "/?" + strings.Repeat("x", 9000): "by net/http"} {
		awake := asked(d, t, path)
		asleep(d)
		t.Logf("%s: %v when frozen, %v when awake", way, asked(d, t, path), awake)
		asleep(d)
	}
	if got := d.Processes(t); !slices.Equal(got, before) {
		t.Errorf("got processes %v; want those of before, %v", got, before)
	}
	awaitLog(d, "probe", "API", "App sleeps after 1s without a request")
	awaitLog(d, "probe", "API", ": a request came")
}

// wakesByConnection wakes the app by a TCP route, and keeps it awake by the connection.
func wakesByConnection(d *e2e.Daemon, t *testing.T, port int) {
	t.Helper()
	route := d.TCPRoute("probe", port)
	defer d.API("DELETE", "/v3/routes/"+route, nil, nil)
	e2e.Answers(t, port, "ready")
	asleep(d)
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	staysAwake(d, t, "a TCP connection is open")
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
	if text, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(text), "ready\n") {
		t.Errorf("got %q, %v; want an answer", text, err)
	}
	c.Close()
	asleep(d)
}

// staysAwake looks at the app for longer than it takes to fall asleep.
func staysAwake(d *e2e.Daemon, t *testing.T, why string) {
	t.Helper()
	for range 6 {
		time.Sleep(500 * time.Millisecond)
		if list := d.Stats("probe", "web"); list[0].State != "RUNNING" {
			t.Fatalf("got %+v; want it awake: %s", list, why)
		}
	}
}

func wakesBySSH(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	c := d.Enter(0)
	staysAwake(d, t, "an ssh session is open")
	c.Close()
	asleep(d)
}

func keptAwakeByWebsocket(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+d.Addr+"/websocket", &websocket.DialOptions{Host: "probe.localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	staysAwake(d, t, "a websocket is open")
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v; want the echo", got, err)
	}
	c.CloseNow()
	asleep(d)
}

// sleepsThroughKill holds that a frozen app is frozen for the next daemon, which wakes it.
func sleepsThroughKill(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	before := d.Processes(t)
	e2e.Eventually(t, time.Minute, func() string { // the app sleeps as soon as its processes begin to be frozen
		if got := unfrozen(before); len(got) > 0 {
			return fmt.Sprintf("processes %v are not frozen", got)
		}
		return ""
	})
	d.Kill()
	if got := unfrozen(before); len(got) > 0 {
		t.Errorf("got processes %v that are not frozen; want none", got)
	}
	d.Start()
	asleep(d)
	t.Logf("%v when frozen by an earlier daemon", asked(d, t, "/"))
	if got := d.Processes(t); !slices.Equal(got, before) {
		t.Errorf("got processes %v; want those of before, %v", got, before)
	}
	asleep(d)
}

// unfrozen are those of the processes that are not frozen: on cgroup v1 a frozen one
// waits for the kernel (D), on v2 its state is that of any other one that sleeps.
func unfrozen(pids []string) []string {
	return slices.DeleteFunc(slices.Clone(pids), func(pid string) bool {
		cgroup, _ := os.ReadFile("/proc/" + pid + "/cgroup")
		_, dir, _ := strings.Cut(strings.TrimSpace(string(cgroup)), "0::")
		events, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", dir, "cgroup.events"))
		return strings.Contains(string(events), "frozen 1") || e2e.StateOf("/proc/"+pid) == "D"
	})
}

func wakesByScale(d *e2e.Daemon) {
	d.T.Helper()
	label(d, "20s", "off") // both are to be seen running
	d.ScaleTo("probe", 2)
	label(d, "1s", "off")
	asleep(d)
	d.API("POST", "/v3/apps/"+d.App("probe")+"/processes/web/actions/scale", e2e.Doc{"instances": 1}, nil)
	e2e.Eventually(d.T, time.Minute, func() string {
		if n := len(d.Containers()); n != 1 {
			return fmt.Sprintf("%d containers are left", n)
		}
		return ""
	})
	asleep(d)
}

// startsAgainWhenKilled ends the app's processes while they are frozen: the app crashed, and
// is started again.
func startsAgainWhenKilled(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	before := d.Processes(t)
	label(d, "10m", "off")
	for _, text := range before {
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) { // on cgroup v2, the end of the first is theirs at once
			t.Fatalf("end process %s: %v", text, err)
		}
	}
	d.Answers("probe", "ready")
	e2e.Eventually(t, time.Minute, func() string {
		if now := d.Stats("probe", "web"); now[0].State != "RUNNING" {
			return fmt.Sprintf("%+v", now)
		}
		if now := d.AnyProcesses(t); len(now) < 2 || slices.Equal(now, before) {
			return fmt.Sprintf("no others are there than those that were ended: %v", now)
		}
		return ""
	})
}

// stopsAndStarts holds that an app without instances is started once by many requests.
func stopsAndStarts(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	label(d, "1s", "1s")
	awaitLog(d, "probe", "API", "App sleeps without instances after 1s asleep")
	e2e.Eventually(t, time.Minute, func() string {
		if n := len(d.Containers()); n > 0 {
			return fmt.Sprintf("%d containers are left", n)
		}
		return ""
	})
	asleep(d)
	d.Kill()
	d.Start()
	began := time.Now()
	var requests sync.WaitGroup
	for n := range 20 {
		requests.Go(func() { reads(d, t, n) })
	}
	requests.Wait()
	t.Logf("%v until 20 requests were answered by an app without instances", time.Since(began))
}

// reads sends a body that the app reads.
func reads(d *e2e.Daemon, t *testing.T, n int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+d.Addr+"/read", strings.NewReader(strings.Repeat("x", 1+n*1000)))
	if err != nil {
		t.Error(err)
		return
	}
	req.Host = "probe.localhost"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != 200 {
		t.Errorf("got %d %s; want 200", res.StatusCode, text)
	}
}

// asleepAndDeleted deletes another app while it is frozen, and returns its container.
func asleepAndDeleted(d *e2e.Daemon, t *testing.T) (container string) {
	t.Helper()
	had := d.Containers()
	d.PushProbe("other")
	guid := d.App("other")
	d.API("PATCH", "/v3/apps/"+guid, e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"cupola.dev/sleep-after": "1s"}}}, nil)
	e2e.Eventually(t, time.Minute, func() string { return strings.TrimPrefix(d.Stats("other", "web")[0].State, "SLEEPING") })
	for _, c := range d.Containers() {
		if !slices.Contains(had, c) {
			container = c
		}
	}
	d.Deleted("other")
	e2e.Eventually(t, time.Minute, func() string {
		if _, err := os.Stat(d.Dir + "/cell/" + container); err == nil {
			return "the container of the deleted app is left"
		}
		return ""
	})
	return container
}
