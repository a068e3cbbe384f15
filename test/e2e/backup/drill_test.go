package backup

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestDrill starts a backup beside the daemon that it is of: what runs there is told, the daemon and its app
// go on, and nothing gets out. A drill that is killed leaves nothing that runs, and what it leaves the next one removes.
func TestDrill(t *testing.T) {
	t.Parallel()
	to, drain := t.TempDir(), listenForDrains(t)
	o := newOffsite(t, to)
	d := e2e.StartDaemon(t, o.binary, append(o.flags, "--data-services", "files", "--allow-loopback")...)
	d.PushProbe("probe")
	d.DataBinding("probe", d.DataInstance("files", "shelf"))
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "drain", "syslog_drain_url": "syslog://" + drain.addr, "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, nil)
	d.DataBinding("probe", d.First("/v3/service_instances?names=drain"))
	d.RestartApp("probe")
	d.Answers("probe", "ready")
	e2e.Eventually(t, time.Minute, drain.quiet)
	command(t, d, "run")
	before, said := d.Running("probe", "web", 1)[0], drain.bytes.Load()

	out := command(t, d, "drill", "latest", "--identity", o.key)
	for _, want := range []string{"everything ran", "processes   1 of 1\n", "routes      1 of 1\n", "services    1 of 1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	if after := d.Running("probe", "web", 1)[0]; after.InstanceGUID != before.InstanceGUID {
		t.Errorf("the app's instance was %+v, and is %+v", before, after)
	}
	if now := drain.bytes.Load(); now != said {
		t.Errorf("the drain got %d bytes during the drill", now-said)
	}

	killDrill(t, d, o)
	killRestoringDrill(t, d, o)
	pushCrashing(d)
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := exec.Command(d.Binary, "backup", file, "--data-dir", d.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := exec.Command(d.Binary, "backups", "drill", file, "--within", "5s", "--data-dir", d.Dir).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "cupola: 1 of 4 do not run from the backup") || !strings.Contains(string(text), "CRASHED") {
		t.Errorf("with an app that crashes: %v\n%s", err, text)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(d.Dir), ".cupola-drill-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// pushCrashing pushes an app that crashes, so that its push fails.
func pushCrashing(d *e2e.Daemon) {
	d.T.Helper()
	dir := d.T.TempDir()
	for name, text := range map[string]string{"file": "x", "manifest.yml": "applications:\n- {name: broken, stack: minifs, buildpacks: [binary_buildpack], command: 'echo no; exit 3', memory: 32M, disk_quota: 32M, no-route: true}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			d.T.Fatal(err)
		}
	}
	if out, err := d.Run("push", dir); err == nil || !strings.Contains(out, "crashed") {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
}

// drills are the files of a name in the data directories of drills beside the daemon's.
func drills(d *e2e.Daemon, name string) []string {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(d.Dir), ".cupola-drill-*", "data", name))
	return left
}

// killDrill kills a drill once it has a container, and waits until nothing runs of it.
func killDrill(t *testing.T, d *e2e.Daemon, o *offsite) {
	t.Helper()
	drill := exec.Command(d.Binary, "backups", "drill", "latest", "--identity", o.key, "--data-dir", d.Dir)
	if err := drill.Start(); err != nil {
		t.Fatal(err)
	}
	var left []string
	e2e.Eventually(t, time.Minute, func() string {
		if left = drills(d, "cell/*"); len(left) == 0 {
			return "no container of a drill began"
		}
		return ""
	})
	_ = drill.Process.Kill()
	_ = drill.Wait()
	dir := filepath.Dir(filepath.Dir(left[0]))
	e2e.Eventually(t, time.Minute, func() string {
		out, _ := exec.Command("pgrep", "--full", "drill-run --data-dir "+dir).Output()
		if len(out) > 0 {
			return fmt.Sprintf("of the killed drill runs %s", out)
		}
		return ""
	})
	if left := drills(d, "cell/*"); len(left) > 0 {
		t.Errorf("the killed drill left the containers %v", left)
	}
}

// killRestoringDrill kills a drill while it has a volume mounted, which it restores.
func killRestoringDrill(t *testing.T, d *e2e.Daemon, o *offsite) {
	t.Helper()
	mounted := regexp.MustCompile(regexp.QuoteMeta(filepath.Dir(d.Dir)) + `/\.cupola-drill-[^/ ]+/\.data\.restore-[^/ ]+/volumes/`)
	restoring := func() bool {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		return mounted.Match(mounts)
	}
	// A volume is mounted for less than a millisecond: strace, which leaves the process our child, has each unmount wait.
	drill := exec.Command("strace", "--daemonize", "--follow-forks", "--output", os.DevNull, "--inject", "umount2:delay_enter=300ms",
		d.Binary, "backups", "drill", "latest", "--identity", o.key, "--data-dir", d.Dir)
	if err := drill.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !restoring() && time.Now().Before(end); {
		<-time.After(10 * time.Millisecond)
	}
	_ = drill.Process.Kill()
	_ = drill.Wait()
	if !restoring() {
		t.Error("the drill was not killed while it had a volume mounted")
	}
}

// drainListener counts what a syslog drain gets.
type drainListener struct {
	addr  string
	bytes atomic.Int64
	last  atomic.Int64 // bytes at the last look
}

func listenForDrains(t *testing.T) *drainListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d := &drainListener{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 4096)
				for n, err := 0, error(nil); err == nil; n, err = conn.Read(buf) {
					d.bytes.Add(int64(n))
				}
			}()
		}
	}()
	return d
}

// quiet is "" once the drain got something, and nothing since a second ago.
func (d *drainListener) quiet() string {
	now := d.bytes.Load()
	if now > 0 && d.last.Swap(now) == now {
		return ""
	}
	<-time.After(time.Second)
	return "the drain gets lines"
}
