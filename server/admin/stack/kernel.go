package stack

import (
	"context"
	"fmt"
	"strings"

	"cupola/rootfs/system"
	"cupola/store"
)

// KernelChange is an app on an image that was staged while the machine had another major version of Linux.
type KernelChange struct {
	App    string // org/space/app
	Kernel string // at that time
}

// changed lists the apps that were staged on an image when the machine had another major version of Linux than now.
func changed(tx *store.Tx, now string) ([]store.StagedKernel, error) {
	all, err := tx.StagedKernels()
	var found []store.StagedKernel
	for _, k := range all {
		if system.KernelChanged(k.Kernel, now) {
			found = append(found, k)
		}
	}
	return found, err
}

// kernelChanges are those that changed finds.
func (l *Library) kernelChanges(ctx context.Context) (all []KernelChange, err error) {
	return all, l.Store.Read(ctx, func(tx *store.Tx) error {
		found, err := changed(tx, system.Kernel())
		all = nil
		for _, k := range found {
			all = append(all, KernelChange{k.App, k.Kernel})
		}
		return err
	})
}

// TellKernelChanges logs, and notes in the log of each app, that the machine has another major version of Linux since the app was
// staged on an image. note writes into an app's log.
func (l *Library) TellKernelChanges(ctx context.Context, note func(appGUID, text string)) {
	var found []store.StagedKernel
	now := system.Kernel()
	err := l.Store.Read(ctx, func(tx *store.Tx) (err error) {
		found, err = changed(tx, now)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.Log.ErrorContext(ctx, "cannot read with which kernel apps were staged", "err", err)
		return
	}
	var names []string
	for _, k := range found {
		names = append(names, k.App)
		note(k.AppGUID, fmt.Sprintf("WARNING: the app was staged on Linux %s, and this machine has Linux %s now: restage it, and check that the programs of its image run", k.Kernel, now))
	}
	if len(names) > 0 {
		l.Log.WarnContext(ctx, "apps on images were staged with another major version of Linux; restage them",
			"kernel", now, "apps", strings.Join(names[:min(len(names), maxUsers)], ", "), "count", len(names))
	}
}
