package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"cupola/runtime/users"
	"cupola/server/doctor"
)

// teardownTime bounds the end of everything that runs.
const teardownTime = 60 * time.Second

// teardown ends all containers and takes away every kernel object of this
// daemon. The data directory's files stay.
func (d *daemon) teardown() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardownTime)
	defer cancel()
	var errs []error
	for _, list := range []func() ([]string, error){d.containerIDs, d.roots.List, d.files.List, d.network.List, d.stateIDs} {
		ids, err := list()
		errs = append(errs, err)
		for _, id := range ids {
			errs = append(errs, d.end(ctx, id))
		}
	}
	errs = append(errs, d.network.Teardown(ctx), d.containers.Teardown(), d.files.Teardown(), d.volumes.Teardown())
	d.network = nil
	return errors.Join(errs...)
}

func (d *daemon) containerIDs() (ids []string, err error) {
	states, err := d.containers.List()
	for _, s := range states {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// stateIDs are the containers that the cell has a directory of, which is the
// last of them to go.
func (d *daemon) stateIDs() (ids []string, err error) {
	entries, err := os.ReadDir(d.path("cell"))
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, err
}

func (d *daemon) end(ctx context.Context, id string) error {
	errs := []error{d.containers.Remove(ctx, id), d.volumes.Hide(id), d.files.Remove(id), d.roots.Unmount(ctx, id), d.network.Release(ctx, id)}
	if err := errors.Join(errs...); err != nil {
		return err // its users stay its own
	}
	return errors.Join(os.RemoveAll(d.path("cell", id)), d.owners.Release(d.path("cell", id)))
}

// Cleanup ends all that runs of a data directory whose daemon has ended: what
// `cupola cleanup` does.
func Cleanup(ctx context.Context, c Config) error {
	d, err := openRuntime(ctx, c)
	if errors.Is(err, syscall.EROFS) {
		return clearReadOnly(ctx, c)
	}
	if err != nil {
		return err
	}
	defer d.close()
	return d.teardown()
}

// openRuntime opens what the data plane needs, and nothing that decides.
func openRuntime(ctx context.Context, c Config) (*daemon, error) {
	if err := c.normalizeForRoot(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.DataDir); err != nil {
		return nil, fmt.Errorf("no data directory: %w", err)
	}
	d := &daemon{Config: c}
	for _, open := range []func(context.Context) error{d.openDir, d.openStore, d.takeSubnet, d.openRoots, d.openVolumes, d.openContainers, d.openNetwork, d.openCell} {
		if err := open(ctx); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

// clearReadOnly ends what runs of a data directory whose disk can only be read.
// What notes how far the end of a container has come cannot be written then, so
// what the kernel has is taken away as the doctor finds it. The error says what is
// left.
func clearReadOnly(ctx context.Context, c Config) error {
	d := &daemon{Config: c}
	if err := d.takeLock(os.O_RDONLY); err != nil {
		return err
	}
	defer d.lock.Close()
	claims, err := users.Open(users.DefaultDir)
	if err != nil {
		return err
	}
	if err := errors.Join(doctor.Clear(ctx, names(c.DataDir)), claims.ReleaseBelow(d.path("cell"))); err != nil {
		return err
	}
	return fmt.Errorf("nothing of %s runs any longer, but the files of its containers are left, for its disk is read-only: %s, then run 'sudo cupola cleanup --data-dir %s' again", c.DataDir, mendReadOnly, c.DataDir)
}
