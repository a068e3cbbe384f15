package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"cupola/runtime/container/launch"
	"cupola/runtime/container/starter"
	"cupola/runtime/container/starter/program"
)

// newLaunchers are the starter, which also enters containers, and for the kind
// Launch the launcher. They make this process the parent of what they start: a child
// subreaper.
func newLaunchers(cfg Config) (start, direct *launcher, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("become the parent of containers: %w", err)
	}
	start = newLauncher(cfg, program.Starter, cfg.Starter)
	switch cfg.Kind {
	case Runc:
		return start, nil, nil
	case "", Launch:
	default:
		return nil, nil, fmt.Errorf("unknown container engine %q: want %s or %s", cfg.Kind, Runc, Launch)
	}
	direct = newLauncher(cfg, program.Launch, cfg.Launcher)
	if err = checkCalls(); err == nil {
		direct.mountNS, err = newMountNamespace()
	}
	if err != nil {
		cfg.Log.Info("runc starts containers, which takes longer", "why", err)
		return start, nil, nil
	}
	return start, direct, nil
}

// CheckLaunch reports why this machine cannot have an Engine of the kind Launch; such
// an Engine starts containers as one of the kind Runc does. Without root, it only looks at the kernel.
func CheckLaunch() error {
	if err := checkCalls(); err != nil || os.Geteuid() != 0 {
		return err
	}
	ns, err := newMountNamespace()
	if err != nil {
		return err
	}
	return ns.Close()
}

// checkCalls looks for the system calls of the program launch.
func checkCalls() error {
	// The calls fail for other reasons where the kernel has them.
	mount := unix.MountSetattr(-1, "", 0, &unix.MountAttr{})
	_, open := unix.Openat2(-1, "", &unix.OpenHow{})
	files := unix.CloseRange(1<<31-1, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	_, _, clone := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)
	switch {
	case errors.Is(mount, unix.ENOSYS) || errors.Is(open, unix.ENOSYS) || files != nil || clone == unix.ENOSYS:
		return errors.New("the launch engine needs Linux 5.12 or later")
	case errors.Is(open, unix.EPERM) || clone == unix.EPERM:
		return errors.New("the launch engine needs the system calls openat2 and clone3, which something around this machine's system forbids")
	}
	return nil
}

// launchDirect runs the launcher. It records the container's first process before
// that is executed, so that the next daemon finds it whenever this one ends.
func (e *Engine) launchDirect(ctx context.Context, state newState, command starter.Process, stdio Stdio, tasks []*os.File) (*process, error) {
	request, err := launchRequest(state.Config, command)
	if err != nil {
		return nil, err
	}
	request.Stdio, request.Files, request.Cgroups = stdio.inherited(), len(tasks), len(tasks)
	request.MountNS = openPath(e.direct.mountNS)
	if e.tree.v2 {
		request.Cgroup = filepath.Join(unifiedRoot, state.Config.Cgroups.Path)
	}
	return e.direct.launch(ctx, state.ID, stdio, tasks, func(in io.Writer, out io.Reader) (p *process, refusal string, err error) {
		err = launch.Converse(in, out, request, func(pid int) (err error) {
			if p, err = family.claim(pid); err != nil {
				return err
			}
			return writeState(e.stateDir(state.ID), state.begun(p))
		})
		var refused launch.RefusalError
		if errors.As(err, &refused) {
			return p, string(refused), nil
		}
		return p, "", err
	})
}

// launchRequest asks for the container that libcontainer would make of c.
func launchRequest(c *configs.Config, p starter.Process) (launch.Request, error) {
	r := launch.Request{
		Rootfs: c.Rootfs, UserNS: c.Namespaces.PathOf(configs.NEWUSER), NetNS: c.Namespaces.PathOf(configs.NEWNET),
		Hostname: c.Hostname, OOMScore: *c.OomScoreAdj, ReadOnly: c.ReadonlyPaths, Masked: c.MaskPaths,
		UID: uint32(p.UID), GID: uint32(p.GID), Args: p.Args, Env: p.Env, Cwd: p.Cwd,
	}
	for _, g := range p.Groups {
		r.Groups = append(r.Groups, uint32(g))
	}
	for _, m := range c.Mounts {
		one := launch.Mount{Type: m.Device, Source: m.Source, Target: m.Destination, Attributes: attributes(m.Flags), Data: m.Data}
		switch m.Device {
		case "bind":
			one.Type, one.Recursive = "", m.Flags&unix.MS_REC != 0
		case "cgroup": // libcontainer's word
			one.Type = "cgroup2"
		}
		r.Mounts = append(r.Mounts, one)
	}
	var errs []error
	bits := func(names []string) uint64 {
		set, err := capabilityBits(names)
		errs = append(errs, err)
		return set
	}
	caps := c.Capabilities
	r.Capabilities = launch.Capabilities{
		Bounding: bits(caps.Bounding), Effective: bits(caps.Effective), Permitted: bits(caps.Permitted),
		Inheritable: bits(caps.Inheritable), Ambient: bits(caps.Ambient),
	}
	return r, errors.Join(errs...)
}

// attributes are the attributes of a mount that mount(2) has flags for.
func attributes(flags int) (all uint64) {
	for _, f := range []struct {
		flag      int
		attribute uint64
	}{
		{unix.MS_RDONLY, unix.MOUNT_ATTR_RDONLY}, {unix.MS_NOSUID, unix.MOUNT_ATTR_NOSUID},
		{unix.MS_NODEV, unix.MOUNT_ATTR_NODEV}, {unix.MS_NOEXEC, unix.MOUNT_ATTR_NOEXEC},
	} {
		if flags&f.flag != 0 {
			all |= f.attribute
		}
	}
	return all
}

// capabilityNumbers are the kernel's numbers of the capabilities that a container may have.
var capabilityNumbers = map[string]int{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FSETID": unix.CAP_FSETID, "CAP_FOWNER": unix.CAP_FOWNER,
	"CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID, "CAP_SETFCAP": unix.CAP_SETFCAP, "CAP_SETPCAP": unix.CAP_SETPCAP,
	"CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "CAP_SYS_CHROOT": unix.CAP_SYS_CHROOT, "CAP_KILL": unix.CAP_KILL,
}

func capabilityBits(names []string) (set uint64, err error) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		n, ok := capabilityNumbers[name]
		if !ok {
			return 0, fmt.Errorf("unknown capability %s", name)
		}
		set |= 1 << n
	}
	return set, nil
}
