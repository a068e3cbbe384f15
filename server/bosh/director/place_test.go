package director

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cupola/server/bosh"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
	boshrelease "cupola/server/bosh/release"
	"cupola/store"
	"cupola/store/cf"
)

// groupOver is a group over AZs z0, z1 and so on.
func groupOver(azs []string, instances int) *manifest.InstanceGroup {
	return &manifest.InstanceGroup{Name: "g", AZs: azs, Instances: instances}
}

// rowsOf are the rows of instances, with GUIDs like their names.
func rowsOf(places []manifest.Instance) (rows []*cf.BOSHInstance) {
	for _, i := range places {
		rows = append(rows, &cf.BOSHInstance{Resource: cf.Resource{GUID: fmt.Sprintf("%s-%d", i.AZ, i.Index)}, Group: "g", Index: i.Index, AZ: i.AZ})
	}
	return rows
}

// earlier are the instances as earlier versions placed them: as many in each AZ.
func earlier(azs []string, each int) (places []manifest.Instance) {
	for n, az := range azs {
		for ordinal := range each {
			places = append(places, manifest.Instance{AZ: az, AZIndex: n + 1, Ordinal: ordinal, Index: n*each + ordinal})
		}
	}
	return places
}

// TestMatch matches rows of any kind to instances: no row is there twice or lost, none is
// surplus while a new one is made, and none leaves an AZ that has places for it.
func TestMatch(t *testing.T) {
	azs := []string{"z0", "z1", "z2", "z3"}
	rapid.Check(t, func(rt *rapid.T) {
		sublist := func(name string) []string {
			return rapid.Permutation(azs).Draw(rt, name)[:rapid.IntRange(1, 4).Draw(rt, name+" count")]
		}
		before, after := sublist("before"), sublist("after")
		rows := rowsOf(groupOver(before, rapid.IntRange(0, 12).Draw(rt, "instances before")).All())
		if rapid.Bool().Draw(rt, "earlier version") {
			rows = rowsOf(earlier(before, rapid.IntRange(0, 4).Draw(rt, "in each")))
		}
		places := groupOver(after, rapid.IntRange(0, 12).Draw(rt, "instances after")).All()
		matched, others := match(rapid.Permutation(rows).Draw(rt, "rows"), places)
		all := slices.DeleteFunc(slices.Concat(matched, others), func(r *cf.BOSHInstance) bool { return r == nil })
		byGUID := func(a, b *cf.BOSHInstance) int { return cmp.Compare(a.GUID, b.GUID) }
		slices.SortFunc(all, byGUID)
		slices.SortFunc(rows, byGUID)
		if !slices.Equal(rows, all) {
			rt.Fatalf("got %v; want each of %v once", all, rows)
		}
		if slices.Contains(matched, nil) && len(others) > 0 {
			rt.Fatalf("got %v for %v, and surplus %v; want no new instance while there is one", matched, places, others)
		}
		away := map[string]int{} // rows that are not in their AZ any longer
		for _, r := range others {
			away[r.AZ]++
		}
		for n, i := range places {
			if r := matched[n]; r != nil && r.AZ != i.AZ {
				away[r.AZ]++
			}
		}
		for n, i := range places {
			if r := matched[n]; away[i.AZ] > 0 && (r == nil || r.AZ != i.AZ) {
				rt.Fatalf("%d rows leave %s, which has the place %+v", away[i.AZ], i.AZ, i)
			}
		}
	})
}

// TestMatchKeeps holds that nothing but the number of instances moves nobody.
func TestMatchKeeps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		azs := []string{"z0", "z1", "z2", "z3"}[:rapid.IntRange(1, 4).Draw(rt, "azs")]
		before, after := rapid.IntRange(0, 12).Draw(rt, "before"), rapid.IntRange(0, 12).Draw(rt, "after")
		rows := rowsOf(groupOver(azs, before).All())
		matched, others := match(rows, groupOver(azs, after).All())
		for n, r := range matched {
			if n < before && r != rows[n] || n >= before && r != nil {
				rt.Fatalf("got %+v at %d of %d, before %d", r, n, after, before)
			}
		}
		if !slices.Equal(others, rows[min(before, after):]) {
			rt.Fatalf("got %v surplus; want the last ones", others)
		}
	})
}

// azLoop is a loop with the deployment "db", as an earlier version left it: three
// instances in each of two AZs, all running, with disks.
func azLoop(t *testing.T) *Loop {
	t.Helper()
	l, _, _ := newLoop(t)
	move(t, l)
	job := func(_ context.Context, _ manifest.Image, name string) (boshrelease.Job, error) {
		j, err := boshrelease.ParseSpec(name, []byte("templates: {where: config/where}"))
		j.Templates[0].Content, j.Templates[0].Mode = []byte("<%= spec.az %>/<%= spec.index %> <%= spec.bootstrap %>"), 0o640
		return j, err
	}
	l.Resolve = func(ctx context.Context, r Request) (*bosh.Deployment, error) {
		return bosh.Resolver{Job: job, Pinned: func(manifest.Image) string { return "docker://h.example/o/r@sha256:1" }}.Resolve(ctx, r.Manifest)
	}
	write(t, l, func(tx *store.Tx) error {
		err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: cf.Resource{GUID: "db"}, Name: "db", Version: 1, Manifest: []byte(azManifest(3, "z1, z2"))})
		for _, r := range rowsOf(earlier([]string{"z1", "z2"}, 3)) {
			text, digest, encodeErr := agent.Spec{Deployment: "db", Group: "g", Index: r.Index, AZ: r.AZ, StoreMB: 10}.Encode()
			r.DeploymentGUID, r.Lifecycle, r.Goal, r.Phase, r.Digest, r.Next, r.DiskGUID = "db", "service", cf.BOSHStarted, cf.BOSHRunning, digest, digest, "disk-"+r.GUID
			err = errors.Join(err, encodeErr, store.BOSHDisks.Insert(tx, &cf.BOSHDisk{Resource: cf.Resource{GUID: r.DiskGUID}, DeploymentName: "db", Group: "g", Index: r.Index, AZ: r.AZ, SizeMB: 10}),
				store.BOSHInstances.Insert(tx, r), store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: r.GUID, Text: text}))
		}
		return err
	})
	return l
}

// azManifest is the manifest of db; from are the groups that its only one was before.
func azManifest(instances int, azs string, from ...string) string {
	return fmt.Sprintf(`name: db
releases: [{name: r, version: 1, url: h.example/o, stemcell: {os: o, version: 1}}]
update: {max_in_flight: 10}
instance_groups: [{name: g, instances: %d, azs: [%s], migrated_from: [%s], persistent_disk: 10, jobs: [{name: j, release: r, properties: {quarks: {bpm: {processes: []}}}}]}]`, instances, azs, strings.Join(from, ", "))
}

// placed are the instances of db, with the GUIDs of instance and disk, and the orphaned
// disks by their names.
func placed(t *testing.T, l *Loop) (instances, orphans []string) {
	t.Helper()
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.By(tx, "deployment_guids", "db")
		disks := map[string]*cf.BOSHDisk{}
		all, diskErr := store.BOSHDisks.By(tx, "deployment_names", "db")
		for _, d := range all {
			disks[d.GUID] = d
			if !d.OrphanedAt.IsZero() {
				orphans = append(orphans, fmt.Sprintf("%d %s %s", d.Index, d.AZ, d.GUID))
			}
		}
		for _, r := range rows {
			instances = append(instances, fmt.Sprintf("%d %s %s %s", r.Index, r.AZ, r.GUID, r.DiskGUID))
			if d := disks[r.DiskGUID]; d == nil || d.Index != r.Index || d.AZ != r.AZ || !d.OrphanedAt.IsZero() {
				t.Errorf("%d %s has the disk %+v; want one of its name", r.Index, r.AZ, d)
			}
		}
		return errors.Join(err, diskErr)
	})
	slices.Sort(instances)
	slices.Sort(orphans)
	return instances, orphans
}

// deployAZs deploys db, and returns what the task said of names and disks.
func deployAZs(t *testing.T, l *Loop, instances int, azs string, from ...string) (said []string) {
	t.Helper()
	var task *cf.BOSHTask
	write(t, l, func(tx *store.Tx) (err error) {
		task, err = Ask(tx, "db", "admin", Deploy, Order{Manifest: azManifest(instances, azs, from...)})
		return err
	})
	move(t, l)
	write(t, l, func(tx *store.Tx) error {
		ended, err := store.BOSHTasks.Get(tx, task.GUID)
		if err == nil && ended.State != cf.BOSHDone {
			t.Errorf("got %s %q", ended.State, ended.Result)
		}
		events, eventErr := store.BOSHTaskEvents.By(tx, "task_guids", task.GUID)
		for _, e := range events {
			if e.State == "finished" && !strings.HasPrefix(e.Stage, "Updating") && !strings.HasPrefix(e.Stage, "Preparing") {
				said = append(said, e.Stage+": "+e.Subject)
			}
		}
		return errors.Join(err, eventErr)
	})
	slices.Sort(said)
	return said
}

// TestEarlierPlacement upgrades a deployment with as many instances in each AZ as the
// group has now in all. The new version changes nothing before a deploy. That
// keeps each instance in its AZ, with its disk, orphans the disks of surplus ones, and
// tells so. A larger group gets them back.
func TestEarlierPlacement(t *testing.T) {
	l := azLoop(t)
	before, _ := placed(t, l)
	move(t, l)
	if diff := gocmp.Diff([]string{"0 z1 z1-0 disk-z1-0", "1 z1 z1-1 disk-z1-1", "2 z1 z1-2 disk-z1-2", "3 z2 z2-3 disk-z2-3", "4 z2 z2-4 disk-z2-4", "5 z2 z2-5 disk-z2-5"}, before); diff != "" {
		t.Fatal(diff)
	}
	if after, _ := placed(t, l); !slices.Equal(before, after) {
		t.Fatalf("got %q without a deploy; want %q", after, before)
	}
	said := deployAZs(t, l, 3, "z1, z2")
	instances, orphans := placed(t, l)
	for _, diff := range []string{
		gocmp.Diff([]string{"0 z1 z1-0 disk-z1-0", "1 z2 z2-3 disk-z2-3", "2 z1 z1-2 disk-z1-2"}, instances),
		gocmp.Diff([]string{"3 z2 disk-z2-4", "4 z1 disk-z1-1", "5 z2 disk-z2-5"}, orphans),
		gocmp.Diff([]string{
			"Deleting unneeded instances g: g/3 (z2-4)", "Deleting unneeded instances g: g/4 (z1-1)", "Deleting unneeded instances g: g/5 (z2-5)",
			"Orphaning disks: disk-z1-1 of g/4, kept for 5 days", "Orphaning disks: disk-z2-4 of g/3, kept for 5 days", "Orphaning disks: disk-z2-5 of g/5, kept for 5 days",
			"Renaming instances g: g/1 (z1-1) becomes g/4", "Renaming instances g: g/3 (z2-3) becomes g/1", "Renaming instances g: g/4 (z2-4) becomes g/3",
		}, said),
	} {
		if diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if said := deployAZs(t, l, 6, "z1, z2"); len(said) != 0 {
		t.Errorf("got %q; want new instances alone", said)
	}
	instances, orphans = placed(t, l)
	for n, want := range []string{"0 z1 z1-0 disk-z1-0", "1 z2 z2-3 disk-z2-3", "2 z1 z1-2 disk-z1-2", "disk-z2-4", "disk-z1-1", "disk-z2-5"} {
		if n >= len(instances) || !strings.HasSuffix(instances[n], want) || len(orphans) > 0 {
			t.Fatalf("got %q, orphans %q; want %s at %d", instances, orphans, want, n)
		}
	}
}

// TestEarlierPlacementWhole upgrades a deployment whose manifest has all instances now:
// each is kept.
func TestEarlierPlacementWhole(t *testing.T) {
	l := azLoop(t)
	said := deployAZs(t, l, 6, "z1, z2")
	want := []string{"Renaming instances g: g/1 (z1-1) becomes g/4", "Renaming instances g: g/4 (z2-4) becomes g/1"}
	if diff := gocmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	instances, orphans := placed(t, l)
	want = []string{"0 z1 z1-0 disk-z1-0", "1 z2 z2-4 disk-z2-4", "2 z1 z1-2 disk-z1-2", "3 z2 z2-3 disk-z2-3", "4 z1 z1-1 disk-z1-1", "5 z2 z2-5 disk-z2-5"}
	if diff := gocmp.Diff(want, instances); diff != "" || len(orphans) > 0 {
		t.Errorf("orphans %q, instances (-want +got):\n%s", orphans, diff)
	}
	deployAZs(t, l, 6, "z2, z3")
	instances, orphans = placed(t, l)
	want = []string{"0 z2 z2-4 disk-z2-4", "1 z3 z1-0 disk-z1-0", "2 z2 z2-3 disk-z2-3", "3 z3 z1-2 disk-z1-2", "4 z2 z2-5 disk-z2-5", "5 z3 z1-1 disk-z1-1"}
	if diff := gocmp.Diff(want, instances); diff != "" || len(orphans) > 0 {
		t.Errorf("with another AZ: orphans %q, instances (-want +got):\n%s", orphans, diff)
	}
}

// TestMigratedOverAZs makes one group of two, each of which was in an AZ.
func TestMigratedOverAZs(t *testing.T) {
	l := azLoop(t)
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.By(tx, "deployment_guids", "db")
		for _, r := range rows {
			r.Group, r.Index = "g-"+r.AZ, r.Index%3
			err = errors.Join(err, store.BOSHInstances.Update(tx, r))
		}
		return err
	})
	said := deployAZs(t, l, 6, "z1, z2", "g-z1", "g-z2")
	instances, orphans := placed(t, l)
	for _, diff := range []string{
		gocmp.Diff([]string{"0 z1 z1-0 disk-z1-0", "1 z2 z2-4 disk-z2-4", "2 z1 z1-2 disk-z1-2", "3 z2 z2-3 disk-z2-3", "4 z1 z1-1 disk-z1-1", "5 z2 z2-5 disk-z2-5"}, instances),
		gocmp.Diff([]string(nil), orphans),
		gocmp.Diff([]string{
			"Renaming instances g: g-z1/0 (z1-0) becomes g/0", "Renaming instances g: g-z1/1 (z1-1) becomes g/4", "Renaming instances g: g-z1/2 (z1-2) becomes g/2",
			"Renaming instances g: g-z2/0 (z2-3) becomes g/3", "Renaming instances g: g-z2/1 (z2-4) becomes g/1", "Renaming instances g: g-z2/2 (z2-5) becomes g/5",
		}, said),
	} {
		if diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
