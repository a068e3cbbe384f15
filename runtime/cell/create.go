package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"cupola/rootfs/root"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
)

// build is a container being created.
type build struct {
	*instance
	full lrp.Container
	net  network.Attachment
	root root.Root
	user user

	volumes []container.Mount
}

// create runs a new container until its end.
func (b *build) create(ctx context.Context) {
	defer b.cell.forget(b.instance)
	switch err := b.run(ctx); {
	case err == nil:
		b.live(ctx)
	case ctx.Err() != nil:
		b.cell.discard(ctx, b.guid()) // the daemon ends: as if it had never begun
	default:
		b.abandon(ctx, err)
	}
}

// run waits for its turn and makes the parts of the container, until halt.
func (b *build) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.halt, func() { cancel(errStopped) })()
	release, err := b.cell.acquireCreateSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	b.logf("Cell %s creating container for instance %s", b.cellID(), b.guid())
	if b.full.Privileged {
		return errPrivileged
	}
	if err := b.checkPorts(); err != nil {
		return err
	}
	if err := b.makeState(); err != nil {
		return err
	}
	if err := b.bringUp(ctx); err != nil {
		return err
	}
	b.logf("Cell %s successfully created container for instance %s", b.cellID(), b.guid())
	return nil
}

// errPrivileged refuses a container that would be root on the machine.
var errPrivileged = errors.New("privileged containers are not supported")

// makeState records the container and its range of host users on disk, before
// anything of it exists.
func (b *build) makeState() error {
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return err
	}
	users, err := b.cell.cfg.Users.Claim(b.dir)
	if err != nil {
		return fmt.Errorf("users: %w", err)
	}
	return b.save(func(r *record) { r.Users = users })
}

// users returns the container's range of host users.
func (b *build) users() users.Range { return b.record().Users }

// broke stops a container whose goroutine in the cell panicked: nothing else
// would stop it.
func (i *instance) broke(ctx context.Context, err error) {
	if ctx.Err() == nil {
		i.abandon(ctx, fmt.Errorf("internal error: %w", err))
	}
}

// abandon reports that the container could not be created, or was stopped
// before it ran, once all of it is removed.
func (i *instance) abandon(ctx context.Context, err error) {
	exit := lrp.Exit{Code: -1, Failed: true, Reason: reason(err)}
	if errors.Is(err, errStopped) {
		exit.Stopped, exit.Failed = true, i.spec.Kind == lrp.KindTask
		if !i.record().Stopped {
			i.logf("Cell %s stopping instance %s", i.cellID(), i.guid())
		}
	} else {
		i.cell.cfg.Log.ErrorContext(ctx, "container was not created", "instance_guid", i.guid(), "err", err)
		if !lrp.IsLogged(exit.Reason) {
			i.errorf("Cell %s failed to create container for instance %s: %s", i.cellID(), i.guid(), err)
		}
	}
	i.trace.end(exit.Reason, nil)
	i.update(func(r *record) { r.Phase, r.Address = lrp.PhaseExited, "" })
	i.cell.discard(ctx, i.guid())
	e := i.event(lrp.EventExited)
	e.Exit = exit
	i.cell.cfg.Events(e)
}

// blame is an error that Diego has its own words for.
type blame struct {
	text string
	err  error
}

func (b *blame) Error() string {
	if cause := b.err.Error(); !strings.HasSuffix(b.text, cause) {
		return b.text + ": " + cause
	}
	return b.text
}
func (b *blame) Unwrap() error { return b.err }

// reason says in Diego's words why a container was not created.
func reason(err error) string {
	if errors.Is(err, errStopped) {
		return "stopped-before-running"
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f.Error()
	}
	if b, ok := errors.AsType[*blame](err); ok {
		return b.text
	}
	return "failed to create container: " + err.Error()
}
