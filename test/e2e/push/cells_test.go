package push

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cupola/server/datadir"
	"cupola/test/e2e"
)

// writeFile writes a configuration file.
func writeFile(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cupola.yml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// placed is an instance with what the stats say of its place.
type placed struct {
	Index        int
	State        string
	Details      string
	InstanceGUID string `json:"instance_guid"`
}

func placedOn(d *e2e.Daemon, app string) []placed {
	d.T.Helper()
	var stats struct{ Resources []placed }
	d.API("GET", "/v3/apps/"+d.App(app)+"/processes/web/stats", nil, &stats)
	return stats.Resources
}

// cellOf is the cell in whose cgroup a container is; "" for none.
func cellOf(t testing.TB, guid string) string {
	t.Helper()
	patterns := []string{"/sys/fs/cgroup/memory/cupola-*/cell@*/" + guid}
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		patterns[0] = "/sys/fs/cgroup/cupola-*/cell@*/" + guid
	}
	found, err := filepath.Glob(patterns[0])
	if err != nil || len(found) != 1 {
		return ""
	}
	return strings.TrimPrefix(filepath.Base(filepath.Dir(found[0])), "cell@")
}

// spread waits until so many instances of an app run, and gives their cells.
func spread(d *e2e.Daemon, app string, n int) []string {
	d.T.Helper()
	var cells []string
	for _, i := range d.Running(app, "web", n) {
		cells = append(cells, cellOf(d.T, i.InstanceGUID))
	}
	slices.Sort(cells)
	return cells
}

// seedTable are the nine cells of the proposal of placement pools. Each has room
// for one instance of 600 MB.
const seedTable = `
cells:
- {name: "1", tags: [staging, skynet], memory: 1100M}
- {name: "2", tags: [staging, skynet], memory: 1100M}
- {name: "3", tags: [staging], memory: 1100M}
- {name: "4", tags: [staging], memory: 1100M}
- {name: "5", tags: [production, skynet], memory: 1100M}
- {name: "6", tags: [production, skynet], memory: 1100M}
- {name: "7", tags: [production], memory: 1100M}
- {name: "8", tags: [production], memory: 1100M}
- {name: "9", tags: [Skynet], memory: 1100M}
`

// TestConstraintsLandOnTheirCells runs an app with each constraint of the
// proposal, and looks for its containers in the cgroups of the cells.
func TestConstraintsLandOnTheirCells(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--config", writeFile(t, seedTable))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	app := d.App("hello-static")
	if out, err := d.Run("placement-pools", "create", "pool", "--require", "none"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.Run("placement-pools", "assign", "pool", "cupola", "dev"); err != nil || !strings.Contains(out, "Assigned placement pool pool to cupola/dev.") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct{ require, disallow, cells, err string }{
		{"", "", "1 2 3 4 5 6 7 8 9", ""},
		{"staging", "", "1 2 3 4", ""},
		{"", "production", "1 2 3 4 9", ""},
		{"staging,skynet", "", "1 2", ""},
		{"staging", "skynet", "3 4", ""},
		{"staging", "staging", "", `found no compatible cell with placement tag "staging" and without placement tag "staging"`},
		{"alfalfa", "", "", `found no compatible cell with placement tag "alfalfa"`},
	} {
		t.Run(fmt.Sprintf("require %s disallow %s", test.require, test.disallow), func(t *testing.T) {
			d := d.On(t)
			args := []string{"placement-pools", "update", "pool", "--any"}
			for flag, tags := range map[string]string{"--require": test.require, "--disallow": test.disallow} {
				if tags != "" {
					args = append(args, flag, tags)
				}
			}
			if out, err := d.Run(args...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := strings.Fields(test.cells)
			d.API("POST", "/v3/apps/"+app+"/actions/stop", e2e.Doc{}, nil)
			d.API("POST", "/v3/apps/"+app+"/processes/web/actions/scale", e2e.Doc{"instances": max(len(want), 1), "memory_in_mb": 600}, nil)
			d.API("POST", "/v3/apps/"+app+"/actions/start", e2e.Doc{}, nil)
			if test.err != "" {
				denied(d, 1, test.err)
				return
			}
			if got := spread(d, "hello-static", len(want)); !slices.Equal(got, want) {
				t.Errorf("got cells %v; want %v", got, want)
			}
			// They are full now, and that alone is reported.
			d.API("POST", "/v3/apps/"+app+"/processes/web/actions/scale", e2e.Doc{"instances": len(want) + 1}, nil)
			denied(d, 1, "insufficient resources: memory")
		})
	}
	var events struct {
		Resources []struct {
			Data struct{ Reason string }
		}
	}
	d.API("GET", "/v3/audit_events?types=audit.app.process.unplaced&target_guids="+url.QueryEscape(app), nil, &events)
	reasons := map[string]bool{}
	for _, e := range events.Resources {
		reasons[e.Data.Reason] = true
	}
	if !reasons["insufficient resources: memory"] || !reasons[`found no compatible cell with placement tag "alfalfa"`] || len(reasons) != 3 {
		t.Errorf("got events with the reasons %v; want each error", reasons)
	}
	var tags []string
	d.API("GET", "/v1/tags", nil, &tags)
	if !slices.Equal(tags, []string{"production", "skynet", "staging"}) {
		t.Errorf("got tags %v", tags)
	}
	if out, err := d.Run("cells"); err != nil || !strings.Contains(out, "5      production, skynet   ") || strings.Count(out, "/1100M") != 9 {
		t.Errorf("cupola cells: %v\n%s", err, out)
	}
	if out, err := d.Run("placement-pools", "list"); err != nil || !strings.Contains(out, "pool   alfalfa   -          cupola/dev") {
		t.Errorf("cupola placement-pools list: %v\n%s", err, out)
	}
}

// denied waits until so many instances have no place, all for a reason.
func denied(d *e2e.Daemon, n int, reason string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		last := placedOn(d, "hello-static")
		have := 0
		for _, i := range last {
			if i.State == "DOWN" && i.Details == reason {
				have++
			} else if i.State != "RUNNING" {
				return fmt.Sprintf("instance %d is %s: %q", i.Index, i.State, i.Details)
			}
		}
		if have != n {
			return fmt.Sprintf("%d instances are denied with %q; want %d: %+v", have, reason, n, last)
		}
		return ""
	})
}

// TestPreloadedRootFSes runs apps on a directory and on a stack that the
// configuration gives other names, on the one cell that has them.
func TestPreloadedRootFSes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"etc", "tmp", "home", "proc", "sys", "dev"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "passwd"), []byte("root:x:0:0::/root:/bin/sh\nvcap:x:2000:2000::/home/vcap:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--config", writeFile(t, fmt.Sprintf(`
cells:
- {name: preloads, memory: 2G, preloaded_rootfses: {lucid64: minifs, cflinuxfs2: %s}}
- {name: preloads-not, memory: 2G, preloaded_rootfses: [minifs]}
`, root)))
	e2e.Eventually(t, time.Minute, func() string {
		var cells []struct {
			RootFSes []string `json:"preloaded_rootfses"`
		}
		d.API("GET", "/v1/cells", nil, &cells)
		if len(cells) == 2 && slices.Equal(cells[0].RootFSes, []string{"cflinuxfs2", "lucid64"}) && slices.Equal(cells[1].RootFSes, []string{"minifs"}) {
			return ""
		}
		return fmt.Sprintf("the cells are %+v", cells)
	})
	for _, stack := range []string{"lucid64", "cflinuxfs2"} {
		if out, err := d.Run("push", e2e.Example(t, "static"), "--stack", stack, "--name", "on-"+stack, "--buildpack", "staticfile_buildpack"); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
		if got := spread(d, "on-"+stack, 1); !slices.Equal(got, []string{"preloads"}) {
			t.Errorf("%s: got cells %v; want the one that has it", stack, got)
		}
	}
}

// TestACellThatGoesIsLeftOneByOne kills the daemon, and starts it with other
// cells: instances stay on those that are left, and leave those that are not,
// while the app goes on serving.
func TestACellThatGoesIsLeftOneByOne(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "cells:\n- {name: going-a, memory: 1200M}\n- {name: going-b, memory: 1200M}\n")
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--config", file)
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-static")+"/processes/web/actions/scale", e2e.Doc{"instances": 4}, nil)
	if got := spread(d, "hello-static", 4); !slices.Equal(got, []string{"going-a", "going-a", "going-b", "going-b"}) {
		t.Fatalf("got cells %v; want two instances on each", got)
	}
	before := placedOn(d, "hello-static")
	d.Kill()
	d.Start()
	d.Running("hello-static", "web", 4)
	if got := placedOn(d, "hello-static"); !slices.Equal(got, before) {
		t.Errorf("got instances %+v after a kill; want %+v", got, before)
	}
	d.Kill()
	if err := os.WriteFile(file, []byte("cells:\n- {name: going-b, memory: 1200M}\n- {name: going-c, memory: 1200M, tags: [new]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Start()
	var failures []string
	e2e.Eventually(t, 60*time.Second, func() string {
		if status, body, err := d.Get("hello-static.localhost", "/"); err != nil || status != 200 {
			failures = append(failures, fmt.Sprint(status, body, err))
		}
		var cells []string
		for _, i := range placedOn(d, "hello-static") {
			if i.State == "RUNNING" {
				cells = append(cells, cellOf(t, i.InstanceGUID))
			}
		}
		slices.Sort(cells)
		if slices.Equal(cells, []string{"going-b", "going-b", "going-c", "going-c"}) {
			return ""
		}
		return fmt.Sprintf("the instances are on the cells %v", cells)
	})
	if len(failures) > 0 {
		t.Errorf("requests failed while the cell was left: %v", failures)
	}
	for _, i := range before {
		if cellOf(t, i.InstanceGUID) == "going-a" {
			t.Errorf("instance %d is still on a", i.Index)
		}
	}
	d.Kill()
	d.Start() // removes what is empty
	own := datadir.OwnerOf(d.Dir).Cgroup
	for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
		if left, err := filepath.Glob(pattern + own + "/cell@going-a"); err != nil || len(left) > 0 {
			t.Errorf("got %v, %v; want nothing left of the cell", left, err)
		}
	}
}
