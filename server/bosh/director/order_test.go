package director

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/lrp"
	"cupola/server/bosh"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/link"
	"cupola/store"
	"cupola/store/cf"
)

// shelf keeps the names of volumes.
type shelf struct {
	names []string
	full  bool
	stuck int // how often persistent disks do not grow
	busy  int // how often a disk is not copied
	grown map[string]int64
	log   []string // what was made again and removed
}

func (s *shelf) Grow(name string, bytes int64) error {
	if s.stuck > 0 && strings.HasPrefix(name, "bosh-store-") {
		s.stuck--
		return errors.New("no space left on device")
	}
	if s.grown == nil {
		s.grown = map[string]int64{}
	}
	s.grown[name] = max(s.grown[name], bytes)
	return nil
}

func (s *shelf) Create(name string, _ volume.Spec) error {
	if s.full {
		return errors.New("no space left on device")
	}
	if !slices.Contains(s.names, name) {
		s.names, s.log = append(s.names, name), append(s.log, "make "+name)
	}
	return nil
}

func (s *shelf) Copy(from, to string) error {
	if !slices.Contains(s.names, from) {
		return volume.ErrNone
	}
	if s.busy > 0 {
		s.busy--
		return errors.New("it is in use")
	}
	s.names, s.log = append(s.names, to), append(s.log, "copy "+from+" to "+to)
	return nil
}

func (s *shelf) Remove(name string) error {
	s.log = append(s.log, "remove "+name)
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == name })
	return nil
}

func (s *shelf) List() ([]string, error) { return slices.Clone(s.names), nil }

// newLoop is a loop with one deployment, of one instance that is to come up.
func newLoop(t *testing.T) (*Loop, *shelf, *cf.BOSHTask) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	shelf := &shelf{}
	l := New(Config{Store: s, Volumes: shelf, Log: slog.New(slog.DiscardHandler)})
	var task *cf.BOSHTask
	write(t, l, func(tx *store.Tx) error {
		d := &cf.BOSHDeployment{Name: "nats"}
		disk := &cf.BOSHDisk{DeploymentName: "nats", Group: "nats", SizeMB: 1}
		err := errors.Join(store.BOSHDeployments.Insert(tx, d), store.BOSHDisks.Insert(tx, disk))
		text, digest, encodeErr := agent.Spec{Deployment: "nats", Group: "nats", StoreMB: 1}.Encode()
		row := &cf.BOSHInstance{DeploymentGUID: d.GUID, Group: "nats", Lifecycle: "service", Goal: cf.BOSHStarted, Phase: cf.BOSHStopped, Next: digest, DiskGUID: disk.GUID}
		err = errors.Join(err, encodeErr, store.BOSHInstances.Insert(tx, row),
			store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: row.GUID, Text: text}))
		var askErr error
		task, askErr = Ask(tx, "nats", "admin", Start, Order{})
		return errors.Join(err, askErr)
	})
	return l, shelf, task
}

func write(t *testing.T, l *Loop, do func(*store.Tx) error) {
	t.Helper()
	if err := l.Store.Write(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

// row reads the task and the instance.
func row(t *testing.T, l *Loop, number string) (task *cf.BOSHTask, i *cf.BOSHInstance) {
	t.Helper()
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.All(tx)
		if err == nil {
			i = rows[0]
			task, err = store.BOSHTasks.First(tx, store.Query{Where: map[string][]string{"numbers": {number}}})
		}
		return err
	})
	return task, i
}

// move looks until nothing is left to do at once.
func move(t *testing.T, l *Loop) {
	t.Helper()
	for range 10 {
		act := func(ctx context.Context, w work) error { _, err := l.act(ctx, w); return err }
		if err := store.DeriveOnce(context.WithoutCancel(t.Context()), l.Store, l.look, act); err != nil {
			t.Fatal(err)
		}
		l.running.Wait()
	}
}

// TestNamesBeforeWhatIsNext: a task goes on, and ends, only when names lead to what it has started.
func TestNamesBeforeWhatIsNext(t *testing.T) {
	l, _, _ := newLoop(t)
	var seen []string
	l.Routed = func(context.Context) error {
		task, i := row(t, l, "1")
		seen = append(seen, fmt.Sprint(task.State, " ", i.Phase))
		return errors.New("not in time") // which stops no task
	}
	move(t, l)
	if task, _ := row(t, l, "1"); task.State != cf.BOSHDone {
		t.Errorf("got %s %q; want the task done", task.State, task.Result)
	}
	if last := seen[len(seen)-1]; last != "processing starting" {
		t.Errorf("waited for names at %q; want the last time when the instance has started and the task has not ended", seen)
	}
}

// TestNoRoomForDisks: the task fails, and the next one continues.
func TestNoRoomForDisks(t *testing.T) {
	l, shelf, _ := newLoop(t)
	shelf.full = true
	move(t, l)
	if task, i := row(t, l, "1"); task.State != cf.BOSHError || i.Phase != cf.BOSHStopped || i.Chosen || i.Digest != "" {
		t.Fatalf("got %s %q and %+v; want a task that failed and an instance that is down", task.State, task.Result, i)
	}
	shelf.full = false
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Start, Order{}); return err })
	move(t, l)
	if task, i := row(t, l, "2"); task.State != cf.BOSHDone || !i.UpToDate() || len(shelf.names) != 3 {
		t.Errorf("got %s %q, %+v and %q; want it up, with three disks", task.State, task.Result, i, shelf.names)
	}
}

// TestRecreate makes an instance come up with new ephemeral disks and its persistent
// one; a restart leaves all.
func TestRecreate(t *testing.T) {
	l, shelf, _ := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	before := time.Time{}
	again := func(kind Kind, number string, want ...string) {
		t.Helper()
		shelf.log = nil
		write(t, l, func(tx *store.Tx) error {
			_, err := Ask(tx, "nats", "admin", kind, Order{CreatedBefore: before})
			return err
		})
		move(t, l)
		task, now := row(t, l, number)
		slices.Sort(shelf.log)
		if task.State != cf.BOSHDone || !now.UpToDate() || !slices.Equal(shelf.log, want) || !slices.Contains(shelf.names, diskVolume(i.DiskGUID)) {
			t.Errorf("%s: got %s %q, %+v and %q; want it up, and %q", kind, task.State, task.Result, now, shelf.log, want)
		}
	}
	data, sys := "bosh-data-"+i.GUID, "bosh-sys-"+i.GUID
	again(Restart, "2")
	again(Recreate, "3", "make "+data, "make "+sys, "remove "+data, "remove "+sys)
	again(Restart, "4")
	_, started := row(t, l, "4")
	before = started.Since
	again(Recreate, "5")
	before = started.Since.Add(time.Second)
	again(Recreate, "6", "make "+data, "make "+sys, "remove "+data, "remove "+sys)
}

// TestHardStop deletes ephemeral disks, also of an instance that was stopped before; the
// next start makes them again.
func TestHardStop(t *testing.T) {
	l, shelf, _ := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	data, sys := "bosh-data-"+i.GUID, "bosh-sys-"+i.GUID
	for n, test := range []struct {
		kind Kind
		hard bool
		want []string
	}{
		{Stop, false, nil},
		{Stop, true, []string{"remove " + data, "remove " + sys}},
		{Start, false, []string{"make " + data, "make " + sys}},
		{Stop, true, []string{"remove " + data, "remove " + sys}},
	} {
		shelf.log = nil
		write(t, l, func(tx *store.Tx) error {
			_, err := Ask(tx, "nats", "admin", test.kind, Order{Hard: test.hard})
			return err
		})
		move(t, l)
		task, now := row(t, l, strconv.Itoa(n+2))
		slices.Sort(shelf.log)
		if task.State != cf.BOSHDone || !now.UpToDate() || !slices.Equal(shelf.log, test.want) || !slices.Contains(shelf.names, diskVolume(i.DiskGUID)) {
			t.Errorf("%+v: got %s %q, %+v and %q", test, task.State, task.Result, now, shelf.log)
		}
	}
}

// TestUnresponsive finds instances that have a process without a running container, which
// a repair recreates.
func TestUnresponsive(t *testing.T) {
	l, _, _ := newLoop(t)
	move(t, l)
	write(t, l, func(tx *store.Tx) error {
		d, err := store.BOSHDeployments.First(tx, store.Query{})
		if err != nil {
			return err
		}
		put := func(index int, phase cf.BOSHPhase, states ...lrp.ActualState) error {
			spec := agent.Spec{Deployment: "nats", Group: "web", Index: index, Jobs: []agent.Job{{Name: "web", Processes: []agent.Process{{Process: bpm.Process{Name: "web"}}}}}}
			text, digest, err := spec.Encode()
			r := &cf.BOSHInstance{Resource: cf.Resource{GUID: "web-" + strconv.Itoa(index)}, DeploymentGUID: d.GUID, Group: "web", Index: index, Lifecycle: "service", Goal: cf.BOSHStarted, Phase: phase, Digest: digest, Next: digest}
			err = errors.Join(err, store.BOSHInstances.Insert(tx, r), store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: r.GUID, Text: text}))
			for _, state := range states {
				guid := agent.Instance{Spec: spec, Digest: digest}.Processes()[0]
				err = errors.Join(err, store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: guid}, Domain: lrp.BOSHDomain("nats"), State: state, Owner: lrp.Owner{GUID: r.GUID}}))
			}
			return err
		}
		if err := errors.Join(put(0, cf.BOSHRunning, lrp.Running), put(1, cf.BOSHRunning), put(2, cf.BOSHRunning, lrp.Crashed), put(3, cf.BOSHStarting)); err != nil {
			return err
		}
		rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
		if err != nil {
			return err
		}
		got, err := l.unresponsive(tx, d, rows)
		if want := []string{"web-1", "web-2"}; !slices.Equal(got, want) {
			t.Errorf("got %q; want %q", got, want)
		}
		return errors.Join(err, store.BOSHDisks.Insert(tx, &cf.BOSHDisk{Resource: cf.Resource{GUID: "unused"}, DeploymentName: "nats", Group: "web", SizeMB: 1}))
	})
	write(t, l, func(tx *store.Tx) error {
		d, err := store.BOSHDeployments.First(tx, store.Query{})
		if err != nil {
			return err
		}
		all, err := Problems(tx, d)
		var got []string
		for _, p := range all {
			got = append(got, p.Type+" "+p.Resource)
		}
		if want := []string{"missing_vm web/1 (web-1)", "missing_vm web/2 (web-2)", "inactive_disk unused"}; !slices.Equal(got, want) {
			t.Errorf("got %q; want %q", got, want)
		}
		_, askErr := Ask(tx, "nats", "admin", Recreate, Order{Repair: true})
		return errors.Join(err, askErr)
	})
	task, _ := row(t, l, "2")
	if err := l.prepare(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	write(t, l, func(tx *store.Tx) error {
		disk, err := store.BOSHDisks.Get(tx, "unused")
		if err == nil && disk.OrphanedAt.IsZero() {
			t.Error("the disk that no instance has is not orphaned")
		}
		rows, listErr := store.BOSHInstances.All(tx)
		for _, r := range rows {
			if want := r.GUID == "web-1" || r.GUID == "web-2"; (r.Renew == 1) != want {
				t.Errorf("%s/%d: got %d; want it recreated: %t", r.Group, r.Index, r.Renew, want)
			}
		}
		return errors.Join(err, listErr)
	})
}

// TestPreparedOnce is a loop that read a task a moment before it was prepared.
func TestPreparedOnce(t *testing.T) {
	l, _, task := newLoop(t)
	if err := errors.Join(l.prepare(t.Context(), task), l.prepare(t.Context(), task)); err != nil {
		t.Fatal(err)
	}
	planned, _ := row(t, l, "1")
	write(t, l, func(tx *store.Tx) error { return Cancel(tx, planned) })
	if err := errors.Join(l.prepare(t.Context(), task), l.giveUp(t.Context(), task, errors.New("too late"))); err != nil {
		t.Fatal(err)
	}
	if got, _ := row(t, l, "1"); got.State != cf.BOSHCancelled || got.Result != "Task 1 cancelled" {
		t.Errorf("got %s %q; want it cancelled", got.State, got.Result)
	}
}

func TestCancelAndDeleteDisk(t *testing.T) {
	l, shelf, task := newLoop(t)
	if err := l.prepare(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.All(tx)
		i := rows[0]
		i.Chosen, i.Phase, i.TaskGUID, i.Digest = true, cf.BOSHPreStart, task.GUID, i.Next
		return errors.Join(err, store.BOSHInstances.Update(tx, i),
			store.BOSHCalls.Insert(tx, &cf.BOSHCall{InstanceGUID: i.GUID, Phase: i.Phase, Script: "pre-start", State: cf.BOSHCalling, Result: []byte{}}))
	})
	planned, _ := row(t, l, "1")
	write(t, l, func(tx *store.Tx) error { return Cancel(tx, planned) })
	if err := l.Store.Write(t.Context(), func(tx *store.Tx) error { return Cancel(tx, planned) }); err == nil {
		t.Error("a task was cancelled twice")
	}
	write(t, l, func(tx *store.Tx) error {
		calls, err := store.BOSHCalls.Running(tx)
		if len(calls) > 0 {
			t.Errorf("got %d calls; want them ended with the task", len(calls))
		}
		return err
	})
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Delete, Order{}); return err })
	_, i := row(t, l, "1")
	disk := func(tx *store.Tx) error {
		d, err := store.BOSHDisks.Get(tx, i.DiskGUID)
		if err == nil {
			err = DeleteDisk(tx, "admin", d)
		}
		return err
	}
	if err := l.Store.Write(t.Context(), disk); err == nil {
		t.Error("the disk of an instance was deleted")
	}
	shelf.names = []string{diskVolume(i.DiskGUID)}
	move(t, l)
	l.sweep(t.Context())
	if len(shelf.names) != 1 {
		t.Errorf("got %q; want the orphan kept", shelf.names)
	}
	write(t, l, disk)
	if l.sweep(t.Context()); len(shelf.names) != 0 {
		t.Errorf("got %q; want none", shelf.names)
	}
}

// TestPoliciesAcrossDeployments lets a deployment reach those whose links it
// uses, and not the other way round.
func TestPoliciesAcrossDeployments(t *testing.T) {
	l, _, _ := newLoop(t)
	write(t, l, func(tx *store.Tx) error {
		err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: cf.Resource{GUID: "app-guid"}, Name: "app", Consumes: []cf.BOSHLink{{Deployment: "nats"}, {Deployment: "gone"}}})
		if err != nil {
			return err
		}
		nats, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {"nats"}}})
		if err != nil {
			return err
		}
		list, err := Policies(tx)
		pairs := map[string]int{}
		for _, p := range list {
			pairs[p.Source+" "+p.Destination]++
		}
		want := map[string]int{nats.GUID + " " + nats.GUID: 2, "app-guid app-guid": 2, "app-guid " + nats.GUID: 2}
		if !maps.Equal(pairs, want) {
			t.Errorf("got %v; want %v", pairs, want)
		}
		return err
	})
}

// TestBadManifest ends the task, and what it was doing, with the reason.
func TestBadManifest(t *testing.T) {
	l, _, _ := newLoop(t)
	var task *cf.BOSHTask
	write(t, l, func(tx *store.Tx) (err error) {
		task, err = Ask(tx, "other", "admin", Deploy, Order{Manifest: "name: ["})
		return err
	})
	move(t, l)
	if got, _ := row(t, l, "2"); got.State != cf.BOSHError || got.Result == "" {
		t.Errorf("got %s %q; want an error", got.State, got.Result)
	}
	write(t, l, func(tx *store.Tx) error {
		events, err := store.BOSHTaskEvents.By(tx, "task_guids", task.GUID)
		if len(events) != 2 || events[1].State != "failed" || events[1].Stage != "Preparing deployment" || events[1].Detail == "" {
			t.Errorf("got %+v; want its beginning and its failure", events)
		}
		return err
	})
}

// TestDisksGrow with what an instance is made of, and are noted then.
func TestDisksGrow(t *testing.T) {
	l, shelf, _ := newLoop(t)
	text, digest, err := agent.Spec{Deployment: "nats", Group: "nats", StoreMB: 5}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	group := func(mb int) *bosh.Group {
		return &bosh.Group{Name: "nats", Instances: []bosh.Instance{{}}, PersistentDiskMB: mb}
	}
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.All(tx)
		if err != nil {
			return err
		}
		w := &rowWriter{tx: tx}
		g := group(5)
		if err := w.disk(rows[0], g); err != nil {
			t.Errorf("got %v; want a disk that grows when its instance starts", err)
		}
		rows[0].Next = digest
		return errors.Join(store.BOSHInstances.Update(tx, rows[0]), store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: rows[0].GUID, Text: text}))
	})
	move(t, l)
	_, i := row(t, l, "1")
	write(t, l, func(tx *store.Tx) error {
		d, err := store.BOSHDisks.Get(tx, i.DiskGUID)
		if err != nil || d.SizeMB != 5 || shelf.grown[diskVolume(d.GUID)] != 5<<20 {
			t.Errorf("got %+v, %v, grown to %v; want 5 MB", d, err, shelf.grown)
		}
		g := group(4)
		err = (&rowWriter{tx: tx}).disk(i, g)
		want := "/instance_groups/name=nats/persistent_disk: the disk has 5 MB and cannot become smaller, 4 MB: keep the size, or delete the instance and its disk first"
		if err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
		return nil
	})
}

// TestDisksThatCannotGrow holds that growing is tried again, that an instance runs with
// its old disk, and that the next task grows it.
func TestDisksThatCannotGrow(t *testing.T) {
	for stuck, want := range map[int]struct {
		state cf.BOSHTaskState
		mb    int
	}{1: {cf.BOSHDone, 5}, 10: {cf.BOSHError, 1}} {
		l, shelf, _ := newLoop(t)
		shelf.stuck = stuck
		text, digest, err := agent.Spec{Deployment: "nats", Group: "nats", StoreMB: 5}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, l, func(tx *store.Tx) error {
			rows, err := store.BOSHInstances.All(tx)
			rows[0].Next = digest
			return errors.Join(err, store.BOSHInstances.Update(tx, rows[0]), store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: rows[0].GUID, Text: text}))
		})
		check := func(number string, state cf.BOSHTaskState, mb int) {
			t.Helper()
			move(t, l)
			task, i := row(t, l, number)
			write(t, l, func(tx *store.Tx) error {
				d, err := store.BOSHDisks.Get(tx, i.DiskGUID)
				if err != nil || task.State != state || i.Phase != cf.BOSHRunning || d.SizeMB != mb {
					t.Errorf("stuck %d times: got %s %q, an instance that is %s, a disk of %d MB, %v; want %s and %d MB", stuck, task.State, task.Result, i.Phase, d.SizeMB, err, state, mb)
				}
				if says := "runs with its old disk: grow it to 5 MB: no space left on device"; strings.Contains(task.Result, says) != (state == cf.BOSHError) {
					t.Errorf("got %q; want it with an error: %s", task.Result, says)
				}
				return nil
			})
		}
		check("1", want.state, want.mb)
		shelf.stuck = 0
		write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Start, Order{}); return err })
		check("2", cf.BOSHDone, 5)
	}
}

// renewing plans a deploy that replaces the disk of the instance of newLoop, and returns
// the task's number and the GUID of the disk.
func renewing(t *testing.T, l *Loop, number int) (task, to string) {
	t.Helper()
	to = fmt.Sprint("copy-", number)
	write(t, l, func(tx *store.Tx) error {
		rows, err := store.BOSHInstances.All(tx)
		if err != nil {
			return err
		}
		asked := &cf.BOSHTask{DeploymentName: "nats", Kind: string(Deploy), State: cf.BOSHProcessing}
		p := taskPlan{NewDisks: map[string]string{rows[0].GUID: to}}
		p.addMissing(rows)
		return errors.Join(store.BOSHTasks.Insert(tx, asked), plan(tx, asked, p))
	})
	return strconv.Itoa(number), to
}

// TestDisksAreReplaced while instances are down, running and stopped ones. A disk that
// cannot be copied stays its instance's, which runs again.
func TestDisksAreReplaced(t *testing.T) {
	l, shelf, _ := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	replaced := func(number int, phase cf.BOSHPhase) {
		t.Helper()
		_, was := row(t, l, "1")
		shelf.log = nil
		name, to := renewing(t, l, number)
		move(t, l)
		task, now := row(t, l, name)
		if task.State != cf.BOSHDone || now.Phase != phase || now.DiskGUID != to || now.Failure != "" {
			t.Errorf("got %s %q, %+v; want it %s with %s", task.State, task.Result, now, phase, to)
		}
		if want := []string{"copy " + diskVolume(was.DiskGUID) + " to " + diskVolume(to)}; !slices.Equal(shelf.log, want) {
			t.Errorf("got %q; want %q", shelf.log, want)
		}
		write(t, l, func(tx *store.Tx) error {
			old, err := store.BOSHDisks.Get(tx, was.DiskGUID)
			d, newErr := store.BOSHDisks.Get(tx, to)
			if err == nil && newErr == nil && (old.OrphanedAt.IsZero() || !d.OrphanedAt.IsZero() || d.SizeMB != 1 || d.Group != "nats") {
				t.Errorf("got %+v and %+v; want the old one orphaned", old, d)
			}
			return errors.Join(err, newErr)
		})
	}
	replaced(2, cf.BOSHRunning)

	shelf.busy = 3
	_, was := row(t, l, "1")
	name, to := renewing(t, l, 3)
	move(t, l)
	task, now := row(t, l, name)
	want := fmt.Sprintf("'nats/0 (%s)' keeps its old disk: it is in use", i.GUID)
	if task.State != cf.BOSHError || task.Result != want || now.Phase != cf.BOSHRunning || now.DiskGUID != was.DiskGUID || slices.Contains(shelf.names, diskVolume(to)) {
		t.Errorf("got %s %q, %+v; want %q, and it running with its old disk", task.State, task.Result, now, want)
	}

	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Stop, Order{}); return err })
	move(t, l)
	replaced(5, cf.BOSHStopped)
}

// TestDisksThatWereNotUsedYet are replaced without a copy.
func TestDisksThatWereNotUsedYet(t *testing.T) {
	l, shelf, _ := newLoop(t)
	move(t, l)
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Stop, Order{}); return err })
	move(t, l)
	_, i := row(t, l, "1")
	write(t, l, func(tx *store.Tx) error {
		d, err := store.BOSHDisks.Get(tx, i.DiskGUID)
		return errors.Join(err, OrphanDisk(tx, "admin", d)) // the instance gets one that nothing has used
	})
	shelf.log = nil
	name, to := renewing(t, l, 3)
	move(t, l)
	if task, now := row(t, l, name); task.State != cf.BOSHDone || now.DiskGUID != to || len(shelf.log) != 0 {
		t.Errorf("got %s %q, %+v and %q; want it with %s", task.State, task.Result, now, shelf.log, to)
	}
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Start, Order{}); return err })
	move(t, l)
	if want := []string{"make " + diskVolume(to)}; !slices.Equal(shelf.log, want) {
		t.Errorf("got %q; want %q", shelf.log, want)
	}
}

// TestACopyThatNobodyTook is removed: the daemon was killed, or the task was cancelled, before
// the instance had it.
func TestACopyThatNobodyTook(t *testing.T) {
	l, shelf, task := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	c := diskCopy{Instance: *i, To: "copy"}
	if err := l.renewDisks(t.Context(), task, []diskCopy{c}); err != nil { // of a task that has ended
		t.Fatal(err)
	}
	if !slices.Contains(shelf.names, diskVolume("copy")) {
		t.Fatalf("got %q; want the copy", shelf.names)
	}
	move(t, l)
	if _, now := row(t, l, "1"); now.DiskGUID != i.DiskGUID || slices.Contains(shelf.names, diskVolume("copy")) || !slices.Contains(shelf.names, diskVolume(i.DiskGUID)) {
		t.Errorf("got %+v, %q; want the disk as before", now, shelf.names)
	}
}

// TestDeleteOfWhatOthersUse is refused without force.
func TestDeleteOfWhatOthersUse(t *testing.T) {
	l, _, _ := newLoop(t)
	write(t, l, func(tx *store.Tx) error {
		for _, name := range []string{"web", "app"} {
			if err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Name: name, Consumes: []cf.BOSHLink{{Deployment: "nats"}}}); err != nil {
				return err
			}
		}
		_, err := Ask(tx, "nats", "admin", Delete, Order{})
		want := "Deployment 'nats' shares links with 'app', 'web': delete these deployments first, or delete it with force"
		if err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
		if _, err := Ask(tx, "app", "admin", Delete, Order{}); err != nil {
			t.Errorf("got %v; want one that only uses links deleted", err)
		}
		_, err = Ask(tx, "nats", "admin", Delete, Order{Force: true})
		return err
	})
	move(t, l)
	write(t, l, func(tx *store.Tx) error {
		all, err := store.BOSHDeployments.All(tx)
		if len(all) != 1 {
			t.Errorf("got %d deployments; want nats deleted with force, and app", len(all))
		}
		return err
	})
}

// TestDeployThatRemovesLinks fails while other deployments use them, unless forced.
func TestDeployThatRemovesLinks(t *testing.T) {
	l, _, _ := newLoop(t)
	offered := []link.Provider{{Name: "nats", Alias: "bus", Type: "nats", Shared: true}}
	l.Resolve = func(context.Context, Request) (*bosh.Deployment, error) {
		return &bosh.Deployment{Name: "nats", Provides: offered, Consumes: []link.Foreign{{Deployment: "db", Name: "db", Type: "sql"}}}, nil
	}
	write(t, l, func(tx *store.Tx) error {
		for name, link := range map[string]cf.BOSHLink{"web": {Deployment: "nats", Name: "bus", Type: "nats"}, "old": {Deployment: "nats"}, "app": {Deployment: "nats", Name: "nats", Type: "nats"}} {
			if err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Name: name, Consumes: []cf.BOSHLink{link}}); err != nil {
				return err
			}
		}
		return nil
	})
	number := 1 // that of newLoop's task
	for _, c := range []struct {
		says  string
		now   []link.Provider
		force bool
		want  string
	}{
		{"the same", offered, false, ""},
		{"without the alias", []link.Provider{{Name: "nats", Alias: "nats", Type: "nats", Shared: true}}, false,
			"deployment 'web' uses the shared link 'bus' of type 'nats', which 'nats' would no longer provide: change that deployment first, or deploy with force"},
		{"not shared", []link.Provider{{Name: "nats", Alias: "bus", Type: "nats"}}, false, "deployment 'app' uses the shared link 'nats' of type 'nats'"},
		{"of another type", []link.Provider{{Name: "nats", Alias: "bus", Type: "other", Shared: true}}, false, "deployment 'web' uses"},
		{"none, forced", nil, true, ""},
	} {
		offered = c.now
		write(t, l, func(tx *store.Tx) error {
			_, err := Ask(tx, "nats", "admin", Deploy, Order{Manifest: "name: nats\nreleases: []\nstemcells: []\nupdate: {canaries: 1, max_in_flight: 1, canary_watch_time: 1, update_watch_time: 1}\ninstance_groups: []\n", Force: c.force})
			return err
		})
		number++
		move(t, l)
		write(t, l, func(tx *store.Tx) error {
			task, err := store.BOSHTasks.First(tx, store.Query{Where: map[string][]string{"numbers": {strconv.Itoa(number)}}})
			if err != nil {
				return err
			}
			if failed := task.State == cf.BOSHError; failed != (c.want != "") || !strings.Contains(task.Result, c.want) {
				t.Errorf("%s: got %s %q; want %q", c.says, task.State, task.Result, c.want)
			}
			d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {"nats"}}})
			if err == nil && c.force && string(d.Provides) != "null" {
				t.Errorf("%s: the deployment provides %s", c.says, d.Provides)
			}
			if err == nil && len(d.Consumes) != 1 {
				t.Errorf("%s: the deployment consumes %v", c.says, d.Consumes)
			}
			return err
		})
	}
}

// TestScriptsThatDidNotRun are not said to have failed.
func TestScriptsThatDidNotRun(t *testing.T) {
	calls := []cf.BOSHCall{
		{Job: "a", Script: "pre-start", State: cf.BOSHFailed, Reason: "a: Exited with status 1"},
		{Job: "b", Script: "pre-start", State: cf.BOSHSucceeded},
		{Job: "c", Script: "pre-start", State: cf.BOSHFailed, Reason: "insufficient resources: memory"},
	}
	unmade := "The pre-start script of job c did not run: insufficient resources: memory"
	if got, want := faults(calls), "1 of 3 pre-start scripts failed. Failed Jobs: a. Successful Jobs: b.\n"+unmade; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	if got := faults(calls[2:]); got != unmade {
		t.Errorf("got %q; want %q", got, unmade)
	}
	if got := faults(calls[1:2]); got != "" {
		t.Errorf("got %q of what succeeded", got)
	}
}

// TestContainersThatWereNotMade says why.
func TestContainersThatWereNotMade(t *testing.T) {
	i := agent.Instance{Digest: "d", Spec: agent.Spec{Deployment: "d", Group: "g", Jobs: []agent.Job{{Name: "j", Processes: []agent.Process{{Process: bpm.Process{Name: "p"}}}}}}}
	of := func(a lrp.Actual) string {
		a.ProcessGUID = i.Processes()[0]
		return unmade(i, []*lrp.Actual{{Key: lrp.Key{ProcessGUID: "another"}, PlacementError: "x"}, &a})
	}
	for want, a := range map[string]lrp.Actual{
		"insufficient resources: memory":       {State: lrp.Unclaimed, PlacementError: "insufficient resources: memory"},
		"failed to create container: no image": {State: lrp.Unclaimed, CrashReason: "failed to create container: no image"},
		"":                                     {State: lrp.Crashed, CrashReason: "g/j/p: Exited with status 1"},
	} {
		if got := of(a); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// TestASpecThatCannotBeRead affects nothing else: what runs of the instance is left
// alone, others are desired, and the deployment can be deleted.
func TestASpecThatCannotBeRead(t *testing.T) {
	l, _, _ := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	if !i.UpToDate() {
		t.Fatalf("got %+v; want it up", i)
	}
	write(t, l, func(tx *store.Tx) error {
		text, digest, err := agent.Spec{Deployment: "other", Group: "web", Jobs: []agent.Job{{Name: "web", Processes: []agent.Process{{Process: bpm.Process{Name: "web"}}}}}}.Encode()
		d := &cf.BOSHDeployment{Name: "other"}
		err = errors.Join(err, store.BOSHDeployments.Insert(tx, d))
		r := &cf.BOSHInstance{DeploymentGUID: d.GUID, Group: "web", Lifecycle: "service", Goal: cf.BOSHStarted, Phase: cf.BOSHRunning, Digest: digest, Next: digest}
		err = errors.Join(err, store.BOSHInstances.Insert(tx, r), store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: r.GUID, Text: text}))
		old, getErr := store.BOSHSpecs.Get(tx, i.Digest)
		old.Text = []byte("{")
		call := &cf.BOSHCall{InstanceGUID: i.GUID, Digest: i.Digest, Phase: cf.BOSHErrand, Script: "run", State: cf.BOSHCalling, Result: []byte{}}
		return errors.Join(err, getErr, store.BOSHSpecs.Update(tx, old), store.BOSHCalls.Insert(tx, call))
	})
	l.specs.retain(nil)
	const why = "instance nats/0: what it is made of cannot be read: "
	write(t, l, func(tx *store.Tx) error {
		all, unknown, err := l.desired(tx)
		if err != nil || len(all) != 1 || all[0].Domain != "bosh.other" || !slices.Equal(unknown, []string{i.GUID}) {
			t.Errorf("got %v, %q, %v; want the other deployment's, and what is not known", all, unknown, err)
		}
		work, err := l.work(tx)
		if err != nil || len(work) != 1 || work[0].Domain != "bosh.nats" || !strings.HasPrefix(work[0].Fault, why) {
			t.Errorf("got %+v, %v; want a call that cannot run, and why", work, err)
		}
		return nil
	})
	move(t, l)
	if _, i = row(t, l, "1"); !strings.HasPrefix(i.Failure, why) {
		t.Errorf("got %q; want the instance to say why it does not run", i.Failure)
	}
	write(t, l, func(tx *store.Tx) error {
		calls, err := store.BOSHCalls.By(tx, "instance_guids", i.GUID)
		for _, c := range calls {
			err = errors.Join(err, store.BOSHCalls.Delete(tx, c.GUID))
		}
		_, askErr := Ask(tx, "nats", "admin", Restart, Order{})
		return errors.Join(err, askErr)
	})
	move(t, l)
	if task, _ := row(t, l, "2"); task.State != cf.BOSHError || !strings.Contains(task.Result, "what it is made of cannot be read") {
		t.Errorf("got %s %q; want the restart to fail with what is wrong", task.State, task.Result)
	}
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Delete, Order{}); return err })
	move(t, l)
	if task, _ := row(t, l, "3"); task.State != cf.BOSHDone {
		t.Errorf("got %s %q; want the deployment deleted", task.State, task.Result)
	}
}

// TestAPlanThatCannotBeRead ends its task.
func TestAPlanThatCannotBeRead(t *testing.T) {
	l, _, task := newLoop(t)
	if err := l.prepare(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	write(t, l, func(tx *store.Tx) error {
		planned, err := store.BOSHTasks.Get(tx, task.GUID)
		planned.Plan = []byte("{")
		return errors.Join(err, store.BOSHTasks.Update(tx, planned))
	})
	move(t, l)
	if got, _ := row(t, l, "1"); got.State != cf.BOSHError || !strings.HasPrefix(got.Result, "read the plan of a task: ") {
		t.Errorf("got %s %q; want an error", got.State, got.Result)
	}
}
