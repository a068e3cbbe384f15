package databroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// How often it is looked whether what is under way has come on, how long an
// instance may take to be made, and how often contents are swept.
const (
	looks     = 250 * time.Millisecond
	rest      = 30 * time.Second
	makeTime  = 3 * time.Minute
	sweepEach = time.Hour
)

// run makes and deletes instances, until ctx ends.
func (b *broker) run(ctx context.Context) error {
	ctx = store.As(ctx, "data services")
	k := &keeper{broker: b, busy: map[string]bool{}, loaded: map[string]time.Time{}}
	defer k.workers.Wait()
	return store.Derive(ctx, b.Store, store.Derivation[[]*cf.DataInstance]{Name: "data services", Read: underWay, Use: k.moveAll, Tick: rest, Log: b.Log})
}

// keeper is one run.
type keeper struct {
	*broker
	workers sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool // instances, by GUID

	swept  time.Time            // when contents were looked through; only moveAll has it
	loaded map[string]time.Time // when the certificate ends that the server of a container has read, by the container's GUID
}

// underWay are the instances that are made or deleted.
func underWay(tx *store.Tx) ([]*cf.DataInstance, error) {
	return store.DataInstances.By(tx, "states", string(cf.DataNew), string(cf.DataMaking), string(cf.DataDeleting))
}

// moveAll moves them on, and looks again soon while there are any.
func (k *keeper) moveAll(ctx context.Context, list []*cf.DataInstance) (next time.Time, err error) {
	for _, i := range list {
		k.begin(ctx, i, k.move)
	}
	if err := k.reloadAll(ctx); err != nil {
		return next, err
	}
	if time.Since(k.swept) > sweepEach {
		k.swept = time.Now()
		if err := k.sweepContent(ctx); err != nil {
			k.Log.WarnContext(ctx, "contents that are not needed any longer were not deleted", "err", err)
		}
	}
	if len(list) > 0 {
		next = time.Now().Add(looks)
	}
	return next, nil
}

// begin changes an instance, concurrently with all others.
func (k *keeper) begin(ctx context.Context, i *cf.DataInstance, change func(context.Context, *cf.DataInstance) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[i.GUID] {
		return
	}
	k.busy[i.GUID] = true
	k.workers.Go(fault.Func("databroker", func() {
		if err := fault.Guard("databroker", func() error { return change(ctx, i) }); err != nil && ctx.Err() == nil && !errors.Is(err, errNotRunning) {
			k.Log.WarnContext(ctx, "instance was not moved on", "service", i.Service, "instance_guid", i.GUID, "state", i.State, "err", err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.busy, i.GUID)
	}))
}

func (k *keeper) move(ctx context.Context, i *cf.DataInstance) error {
	release, err := k.turn(ctx, i.GUID)
	if err != nil {
		return err
	}
	defer release()
	switch i.State {
	case cf.DataNew:
		return k.makeVolume(ctx, i)
	case cf.DataMaking:
		if i.Upgrade != cf.UpgradeNone {
			return k.moveUpgrade(ctx, i)
		}
		return k.make(ctx, i)
	}
	return k.remove(ctx, i)
}

// makeVolume comes before the container, which could not start without.
func (k *keeper) makeVolume(ctx context.Context, i *cf.DataInstance) error {
	s, p, ok := known(i)
	if !ok {
		return k.become(ctx, i, cf.DataFailed, "this cupola has no such service or plan")
	}
	if err := k.pullFirst(ctx, i); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, k.become(ctx, i, cf.DataFailed, err.Error()))
		}
		return err
	}
	if err := k.createVolume(i, s, p); err != nil {
		return errors.Join(err, k.become(ctx, i, cf.DataFailed, "there is no room for its volume"))
	}
	if err := k.fill(ctx, i); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, k.become(ctx, i, cf.DataFailed, err.Error()), k.dropContent(i.GUID))
		}
		return err
	}
	return errors.Join(k.become(ctx, i, cf.DataMaking, ""), k.dropContent(i.GUID))
}

// createVolume creates the volume of an instance, if it needs one and has none.
func (k *keeper) createVolume(i *cf.DataInstance, s service, p plan) error {
	if p.volumeBytes == 0 {
		return nil
	}
	return k.Volumes.Create(i.GUID, volumeOf(s, p))
}

// fill gives a volume what its instance is restored from, if it is.
func (k *keeper) fill(ctx context.Context, i *cf.DataInstance) (err error) {
	switch want := parametersIn(i); {
	case want.Of != "":
		if err = k.fillFromPoint(ctx, i, want); err != nil {
			err = fmt.Errorf("restore to a point in time: %w", err)
		}
	case want.Content != "":
		if err = k.fillFromContent(ctx, i); err != nil {
			err = fmt.Errorf("restore from a backup: %w", err)
		}
	}
	return err
}

func volumeOf(s service, p plan) volume.Spec {
	return volume.Spec{Bytes: p.volumeBytes, Shared: s.engine == nil}
}

// Volume is the volume of an instance, which has its GUID for a name; false: it
// has none yet, or need not have one any longer.
func Volume(i *cf.DataInstance) (volume.Spec, bool) {
	s, p, ok := known(i)
	if !ok || p.volumeBytes == 0 || i.State != cf.DataMaking && i.State != cf.DataReady {
		return volume.Spec{}, false
	}
	return volumeOf(s, p), true
}

// make waits for the database and sets it up.
func (k *keeper) make(ctx context.Context, i *cf.DataInstance) error {
	err := k.setUp(ctx, i)
	if err == nil {
		return k.become(ctx, i, cf.DataReady, "")
	}
	if time.Since(i.UpdatedAt) > startTime(i, makeTime) {
		return k.become(ctx, i, cf.DataFailed, k.why(ctx, i, err))
	}
	return err
}

// setUp sets a database up, without the users of the one that it was restored from.
func (k *keeper) setUp(ctx context.Context, i *cf.DataInstance) error {
	s, _, _ := known(i)
	if s.engine == nil {
		return nil
	}
	err := k.execute(ctx, i, s.engine.setUp())
	want := parametersIn(i)
	if e, ok := s.engine.(builtIn); ok && err == nil && want.restored() && e.disownUsers() != "" {
		err = k.execute(ctx, i, e.disownUsers())
	}
	if err == nil && want.Recovery != nil && *want.Recovery {
		err = k.setRecovery(ctx, i, true)
	}
	return err
}

// why says for what reason an instance was not made.
func (k *keeper) why(ctx context.Context, i *cf.DataInstance, last error) string {
	why := last.Error()
	_ = k.Store.Read(ctx, func(tx *store.Tx) error { // the last error will do
		rows, err := store.ActualLRPs.By(tx, "process_guids", processGUID(i.GUID))
		for _, a := range rows {
			for _, reason := range []string{a.CrashReason, a.PlacementError} {
				if reason != "" {
					why = reason
				}
			}
		}
		return err
	})
	return fmt.Sprintf("the server did not start within %s: %s", startTime(i, makeTime), why)
}

// become writes an instance's next state, unless it is another by now.
func (k *keeper) become(ctx context.Context, i *cf.DataInstance, next cf.DataState, fault string) error {
	return k.change(ctx, i, func(now *cf.DataInstance) { now.State, now.Fault = next, fault })
}

// change changes the row of an instance, unless its state is another one by now.
func (k *keeper) change(ctx context.Context, i *cf.DataInstance, do func(*cf.DataInstance)) error {
	return k.Store.Write(ctx, func(tx *store.Tx) error {
		now, err := store.DataInstances.Find(tx, i.GUID)
		if err != nil || now == nil || now.State != i.State {
			return err
		}
		do(now)
		return store.DataInstances.Update(tx, now)
	})
}

// stopped reports whether the container of an instance is gone.
func (k *keeper) stopped(ctx context.Context, i *cf.DataInstance) (gone bool, err error) {
	process := processGUID(i.GUID)
	if slices.ContainsFunc(k.Containers(), func(c lrp.ContainerStatus) bool { return c.ProcessGUID == process }) {
		return false, nil
	}
	err = k.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.By(tx, "process_guids", process)
		gone = len(rows) == 0
		return err
	})
	return gone && err == nil, err
}

// remove deletes what an instance has once its container is gone, the row last.
func (k *keeper) remove(ctx context.Context, i *cf.DataInstance) error {
	if gone, err := k.stopped(ctx, i); err != nil || !gone {
		return err
	}
	if err := errors.Join(k.Volumes.Remove(i.GUID), k.dropContent(i.GUID)); err != nil {
		return err
	}
	err := k.Store.Write(ctx, func(tx *store.Tx) error { return store.DataInstances.Delete(tx, i.GUID) })
	if err == nil {
		k.broker.mu.Lock()
		defer k.broker.mu.Unlock()
		delete(k.turns, i.GUID)
	}
	return err
}
