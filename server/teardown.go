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
func (h *house) teardown() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardownTime)
	defer cancel()
	var errs []error
	for _, list := range []func() ([]string, error){h.containerIDs, h.roots.List, h.files.List, h.network.List, h.stateIDs} {
		ids, err := list()
		errs = append(errs, err)
		for _, id := range ids {
			errs = append(errs, h.end(ctx, id))
		}
	}
	errs = append(errs, h.network.Teardown(ctx), h.containers.Teardown(), h.files.Teardown(), h.volumes.Teardown())
	h.network = nil
	return errors.Join(errs...)
}

func (h *house) containerIDs() (ids []string, err error) {
	states, err := h.containers.List()
	for _, s := range states {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// stateIDs are the containers that the cell has a directory of, which is the
// last of them to go.
func (h *house) stateIDs() (ids []string, err error) {
	entries, err := os.ReadDir(h.path("cell"))
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, err
}

func (h *house) end(ctx context.Context, id string) error {
	errs := []error{h.containers.Remove(ctx, id), h.volumes.Hide(id), h.files.Remove(id), h.roots.Unmount(ctx, id), h.network.Release(ctx, id)}
	if err := errors.Join(errs...); err != nil {
		return err // its users stay its own
	}
	return errors.Join(os.RemoveAll(h.path("cell", id)), h.owners.Release(h.path("cell", id)))
}

// Cleanup ends all that runs of a data directory whose daemon has ended: what
// `cupola cleanup` does.
func Cleanup(ctx context.Context, c Config) error {
	h, err := openRuntime(ctx, c)
	if errors.Is(err, syscall.EROFS) {
		return clearReadOnly(ctx, c)
	}
	if err != nil {
		return err
	}
	defer h.close()
	return h.teardown()
}

// openRuntime opens what the data plane needs, and nothing that decides.
func openRuntime(ctx context.Context, c Config) (*house, error) {
	if err := c.normalizeForRoot(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.DataDir); err != nil {
		return nil, fmt.Errorf("no data directory: %w", err)
	}
	h := &house{Config: c}
	for _, open := range []func(context.Context) error{h.openDir, h.openStore, h.takeSubnet, h.openRoots, h.openVolumes, h.openContainers, h.openNetwork, h.openCell} {
		if err := open(ctx); err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}

// clearReadOnly ends what runs of a data directory whose disk can only be read.
// What notes how far the end of a container has come cannot be written then, so
// what the kernel has is taken away as the doctor finds it. The error says what is
// left.
func clearReadOnly(ctx context.Context, c Config) error {
	h := &house{Config: c}
	if err := h.takeLock(os.O_RDONLY); err != nil {
		return err
	}
	defer h.lock.Close()
	claims, err := users.Open(users.DefaultDir)
	if err != nil {
		return err
	}
	if err := errors.Join(doctor.Clear(ctx, names(c.DataDir)), claims.ReleaseBelow(h.path("cell"))); err != nil {
		return err
	}
	return fmt.Errorf("nothing of %s runs any longer, but the files of its containers are left, for its disk is read-only: %s, then run 'sudo cupola cleanup --data-dir %s' again", c.DataDir, mendReadOnly, c.DataDir)
}
