package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// cycleCount is how often CI pushes and deletes an app; `make chaos` does it
// 2,000 times.
const cycleCount = 12

// warmUp is how many cycles there are before anything is counted: connections to the
// database are opened when so many are needed at once.
const warmUp = 3

// TestCycles pushes an app and deletes it, again and again. What the daemon
// takes of the machine must be the same in the end as after the first tenth;
// the slopes are reported for docs/reliability.md.
//
// CUPOLA_CYCLES says how many cycles there are.
func TestCycles(t *testing.T) {
	t.Parallel()
	cycles := int(environ(t, "CUPOLA_CYCLES", cycleCount))
	binary, at := e2e.NeedBinary(t), fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, binary, "--metrics", at)
	var points []sample
	for n := range cycles {
		cycle(d, t)
		if every := max(cycles/20, 1); n+1 >= max(cycles/10, warmUp) && (n+1)%every == 0 {
			points = append(points, take(d, t, at, n+1))
		}
	}
	reportSlopes(t, points)
}

// cycle pushes an app, has its page, and deletes it.
func cycle(d *e2e.Daemon, t *testing.T) {
	t.Helper()
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Answers("hello-static", "")
	guid := d.App("hello-static")
	d.API("DELETE", "/v3/apps/"+guid, nil, nil)
	e2e.Eventually(t, time.Minute, func() string {
		if left := d.Containers(); len(left) > 0 {
			return fmt.Sprintf("containers are left: %v", left)
		}
		return ""
	})
}

// sample is what the daemon takes after so many cycles, by name.
type sample struct {
	cycles int
	taken  map[string]float64
}

// steady are the things of which there may be no more after all cycles than
// after the first tenth.
var steady = []string{"mounts", "loop devices", "network namespaces", "nft elements", "processes", "descriptors", "goroutines"}

func take(d *e2e.Daemon, t *testing.T, metrics string, cycles int) sample {
	t.Helper()
	quiet(d)
	pid := strconv.Itoa(d.Cmd.Process.Pid)
	taken := map[string]float64{
		"descriptors":        descriptors(t, pid, filepath.Join(d.Dir, "logs")),
		"goroutines":         metric(t, metrics, "go_goroutines"),
		"memory, MiB":        residentMiB(t, pid),
		"heap, MiB":          metric(t, metrics, "go_memstats_heap_alloc_bytes") / (1 << 20),
		"mounts":             float64(lines(t, "/proc/"+pid+"/mountinfo", d.Dir)),
		"loop devices":       float64(strings.Count(output(t, "losetup", "--list", "--noheadings", "--output", "BACK-FILE"), d.Dir)),
		"network namespaces": float64(entries(t, filepath.Join(d.Dir, "netns/ns"))),
		"nft elements":       elements(d, t),
		"processes":          float64(lines(t, "/proc/"+pid+"/task/"+pid+"/children", " ")),
		"disk, MiB":          diskMiB(t, d.Dir),
	}
	for table, rows := range rowCounts(d, t) {
		taken["rows of "+table] = rows
	}
	return sample{cycles, taken}
}

// pooled is how many network namespaces wait for containers (package network: poolSize).
const pooled = 4

// quiet waits until what is done beside requests is done: the pool of network
// namespaces is full again, and what was deleted is gone from the disk.
func quiet(d *e2e.Daemon) {
	last := -1
	e2e.Eventually(d.T, time.Minute, func() string {
		networks := entries(d.T, filepath.Join(d.Dir, "netns/ns"))
		now := networks + entries(d.T, filepath.Join(d.Dir, "rootfs/trash"))
		if networks < pooled || now != last {
			last = now
			<-time.After(time.Second) // beside other tests a network takes long to make
			return "namespaces or deleted files still change"
		}
		return ""
	})
}

// descriptors counts the open files of a process, but for those of apps' logs,
// which are closed within two minutes of an app's deletion.
func descriptors(t *testing.T, pid, logs string) (n float64) {
	t.Helper()
	dir := "/proc/" + pid + "/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && !strings.HasPrefix(to, logs+"/") {
			n++
		}
	}
	return n
}

func entries(t testing.TB, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// lines counts the lines, or words where the text is " ", of a file that have a text.
func lines(t *testing.T, file, text string) (n int) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text == " " {
		return len(strings.Fields(string(content)))
	}
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

func residentMiB(t *testing.T, pid string) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	return number(t, residentLine, string(status)) / 1024
}

func number(t *testing.T, pattern *regexp.Regexp, text string) float64 {
	t.Helper()
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %.200q", pattern, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// metric asks a daemon for one of its metrics.
func metric(t *testing.T, at, name string) float64 {
	t.Helper()
	res, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return number(t, regexp.MustCompile(`(?m)^`+name+` (\S+)$`), string(text))
}

// elements counts what is in the chains, sets and maps of the daemon's table,
// which is the one that names its containers' addresses.
func elements(d *e2e.Daemon, t *testing.T) float64 {
	t.Helper()
	prefix := strings.TrimSuffix(d.Subnet().Addr().String(), "0.0") // of a /16
	for _, table := range regexp.MustCompile(`(?m)^table ip (\S+)$`).FindAllStringSubmatch(output(t, "nft", "list", "tables"), -1) {
		text, err := exec.CommandContext(t.Context(), "nft", "list", "table", "ip", table[1]).Output()
		if err != nil {
			continue // another daemon's, which has ended since
		}
		if text := string(text); strings.Contains(text, prefix) {
			return float64(strings.Count(text, "\n") + strings.Count(text, ","))
		}
	}
	t.Fatalf("no nftables table names %s", prefix)
	return 0
}

func diskMiB(t *testing.T, dir string) float64 {
	t.Helper()
	kib, _, _ := strings.Cut(output(t, "du", "-sxk", dir), "\t")
	n, err := strconv.ParseFloat(kib, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n / 1024
}

// rowCounts counts the rows of each table, beside the daemon.
func rowCounts(d *e2e.Daemon, t *testing.T) map[string]float64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.Dir, "db/cupola.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var list string
	if err := db.QueryRow(`SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'`).Scan(&list); err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for name := range strings.SplitSeq(list, ",") {
		var n float64
		if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM "`+name+`"`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts[name] = n
	}
	return counts
}

// reportSlopes tells how fast each thing grows, and fails where one grows of
// which there must be no more.
func reportSlopes(t *testing.T, points []sample) {
	t.Helper()
	first, last := points[0], points[len(points)-1]
	for name, before := range first.taken {
		after := last.taken[name]
		if slope := slopeOf(points, name); slope != 0 || before != after {
			t.Logf("%-32s %9.1f after %d cycles, %9.1f after %d; slope %+.2f per 1,000", name, before, first.cycles, after, last.cycles, 1000*slope)
		}
	}
	for _, name := range steady {
		// A request of a moment ago may hold a few.
		if before, after := first.taken[name], last.taken[name]; after > before+8 {
			t.Errorf("%s: %v after %d cycles, %v after %d", name, before, first.cycles, after, last.cycles)
		}
	}
}

// slopeOf is what the least squares say that a thing grows by in a cycle.
func slopeOf(points []sample, name string) float64 {
	var sumX, sumY, sumXX, sumXY float64
	n := float64(len(points))
	for _, p := range points {
		x, y := float64(p.cycles), p.taken[name]
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	if d := n*sumXX - sumX*sumX; d != 0 {
		return (n*sumXY - sumX*sumY) / d
	}
	return 0
}
