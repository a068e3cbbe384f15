//go:build linux && cgo

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// runc runs the app as the engine does, by runc's command.
type runc struct {
	*world
}

func newRunc(w *world) (*runc, error) {
	if _, err := exec.LookPath("runc"); err != nil {
		return nil, fmt.Errorf("%w: apt-get install runc", err)
	}
	r := &runc{w}
	for name, args := range map[string][]string{"once": {appPath}, "sleep": {appPath, "sleep"}} {
		if err := r.writeBundle(w.path(name), args); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// command is runc with its state in the world's directory.
func (r *runc) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "runc", append([]string{"--root", r.path("runc")}, args...)...)
}

// writeBundle writes a config.json with the posture of the engine's containers.
// Its network namespace is an empty one: runc sets up none.
func (r *runc) writeBundle(dir string, args []string) error {
	seccomp, err := r.seccomp()
	if err != nil {
		return err
	}
	memory, pids, shares := limits.MemoryBytes, limits.Pids, limits.CPUShares
	ids := []specs.LinuxIDMapping{{HostID: idBase, Size: idSize}}
	spec := specs.Spec{
		Version: "1.0.2", Hostname: "bench", Root: &specs.Root{Path: r.root.Path},
		Process: &specs.Process{
			Args: args, Env: []string{"PATH=/bin"}, Cwd: "/",
			User: specs.User{UID: contract.VcapID, GID: contract.VcapID}, Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: true,
		},
		Mounts: r.mounts(),
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace}, {Type: specs.MountNamespace}, {Type: specs.PIDNamespace},
				{Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.NetworkNamespace},
			},
			UIDMappings: ids, GIDMappings: ids,
			Resources: &specs.LinuxResources{
				Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}},
				Memory:  &specs.LinuxMemory{Limit: &memory, Swap: &memory},
				CPU:     &specs.LinuxCPU{Shares: &shares}, Pids: &specs.LinuxPids{Limit: &pids},
			},
			MaskedPaths:   []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/pressure", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/security"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Seccomp:       seccomp,
		},
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(dir+"/config.json", data, 0o644)
}

func (r *runc) mounts() []specs.Mount {
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "noexec", "mode=1777", "size=64m"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "nodev", "noexec", "ro"}},
		{Destination: contract.ProgramDir, Type: "bind", Source: r.path("helper"), Options: []string{"bind", "nosuid", "nodev", "ro"}},
	}
	for _, b := range r.root.Binds {
		if b.Source == "" {
			all = append(all, specs.Mount{Destination: b.Destination, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "ro", "size=4k"}})
			continue
		}
		all = append(all, specs.Mount{Destination: b.Destination, Type: "bind", Source: b.Source, Options: []string{"rbind", "nosuid", "nodev"}})
	}
	return all
}

// seccomp allows what the engine's filter allows, on this architecture alone:
// the least that runc can be given to compile.
func (r *runc) seccomp() (*specs.LinuxSeccomp, error) {
	program, err := os.ReadFile(r.path("helper/seccomp.bpf"))
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(program)/unix.SizeofSockFilter)
	if _, err := binary.Decode(program, binary.NativeEndian, filter); err != nil {
		return nil, err
	}
	var names []string
	for nr := range uint32(512) {
		name, err := libseccomp.ScmpSyscall(nr).GetName()
		if err == nil && nr != unix.SYS_CLONE && allows(filter, nr) {
			names = append(names, name)
		}
	}
	if !slices.Contains(names, "execve") {
		return nil, fmt.Errorf("the filter with %d calls was not understood", len(names))
	}
	return &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86_64},
		Syscalls: []specs.LinuxSyscall{
			{Names: names, Action: specs.ActAllow},
			{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Value: 0x7e020000, Op: specs.OpMaskedEqual}}},
		},
	}, nil
}
