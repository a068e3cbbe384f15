package bosh

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// azDaemon is a daemon with the deployment "hands", whose workers have AZs.
type azDaemon struct{ *directorDaemon }

// opsOver are the operations that give the workers a number and AZs.
func opsOver(instances int, azs string) string {
	return fmt.Sprintf(`[{"type": "replace", "path": "/instance_groups/name=worker/instances", "value": %d},
		{"type": "replace", "path": "/instance_groups/name=worker/azs?", "value": [%s]}]`, instances, azs)
}

// workers are the workers by index, as the director's API shows them.
func (d *azDaemon) workers() []instanceInfo {
	d.T.Helper()
	all := slices.DeleteFunc(d.infos("instances"), func(i instanceInfo) bool { return i.JobName != "worker" })
	slices.SortFunc(all, func(a, b instanceInfo) int { return a.Index - b.Index })
	return all
}

// over deploys a number of workers over AZs, and returns what the command printed. It
// wants AZs by index; who was there before is to have its index, GUID and disk.
func (d *azDaemon) over(instances int, azs string, want ...string) (out string) {
	d.T.Helper()
	before := d.workers()
	out = d.must(d.deploy(opsOver(instances, azs)))
	after := d.workers()
	if len(after) != len(want) {
		d.T.Fatalf("got %+v; want %d workers", after, len(want))
	}
	for n, i := range after {
		if i.Index != n || i.AZ != want[n] || i.Bootstrap != (n == 0) || i.JobState != "running" || len(i.Disks) != 1 {
			d.T.Errorf("got %+v at %d; want it in %s", i, n, want[n])
		}
		if n < len(before) && (i.ID != before[n].ID || !slices.Equal(i.Disks, before[n].Disks)) {
			d.T.Errorf("worker/%d was %+v, and is %+v", n, before[n], i)
		}
	}
	return out
}

// TestAZs deploys three instances over two AZs, then more and fewer of them: those that
// stay keep index, AZ and disk, and who comes back gets the disk of its name again.
func TestAZs(t *testing.T) {
	t.Parallel()
	d := &azDaemon{startDirector(t)}
	d.login(url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {e2e.AdminPassword}}, "bosh_cli", "")
	lint := d.must(d.Run(d.deployArgs(opsOver(3, `"z1", "z2"`), "lint")...))
	contains(t, lint, "/instance_groups/name=worker: 3 instances over 2 AZs: 2 in z1, 1 in z2")
	d.must(d.deploy(opsOver(3, `"z1", "z2"`)))
	d.over(3, `"z1", "z2"`, "z1", "z2", "z1")
	d.wantLine("start 1 of 2, 1 with")
	out := d.over(4, `"z1", "z2"`, "z1", "z2", "z1", "z2")
	if strings.Contains(out, "worker/0 (") || !strings.Contains(out, "worker/3 (") {
		t.Errorf("got %s; want no instance updated but the new one", out)
	}
	gone := d.workers()[2:]
	out = d.over(2, `"z1", "z2"`, "z1", "z2")
	for n, i := range gone {
		contains(t, out, fmt.Sprintf("Orphaning disks: %s of worker/%d, kept for 5 days", i.Disks[0], n+2))
	}
	d.over(3, `"z1", "z2"`, "z1", "z2", "z1")
	if now := d.workers()[2]; now.ID == gone[0].ID || now.Disks[0] != gone[0].Disks[0] {
		t.Errorf("got %+v; want a new instance with the disk of %+v", now, gone[0])
	}
	d.wantLine("start 2 of 2, 1 with")
	d.reordered(t)
}

// reordered deploys with the AZs in another order, and kills the daemon in the middle:
// instances stay in their AZs, with their disks and other indexes.
func (d *azDaemon) reordered(t *testing.T) {
	t.Helper()
	before := d.workers()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.Binary, d.deployArgs(opsOver(3, `"z2", "z1"`), "deploy")...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		if slices.ContainsFunc(d.workers(), func(i instanceInfo) bool { return i.JobState != "running" }) {
			return ""
		}
		return "the update does not begin"
	})
	d.Kill()
	_ = cmd.Wait() // its daemon is gone
	d.Start()
	d.find()
	contains(t, d.must(d.Run("deployment", "task")),
		fmt.Sprintf("Renaming instances worker: worker/0 (%s) becomes worker/1", before[0].ID), fmt.Sprintf("Renaming instances worker: worker/1 (%s) becomes worker/0", before[1].ID))
	after := d.workers()
	if len(after) != 3 {
		t.Fatalf("got %+v; want three workers", after)
	}
	for n, was := range []instanceInfo{before[1], before[0], before[2]} {
		if now := after[n]; now.ID != was.ID || !slices.Equal(now.Disks, was.Disks) || now.JobState != "running" || now.AZ != []string{"z2", "z1", "z2"}[n] {
			t.Errorf("worker/%d was %+v, and is %+v", n, was, now)
		}
	}
	d.wantLine("start 2 of 0, 2 with")
	d.wantLine("start 2 of 1, 2 with")
	d.wantLine("start 3 of 2, 2 with")
}
