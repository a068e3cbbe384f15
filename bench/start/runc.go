package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// doc is a JSON document.
type doc = map[string]any

// writeBundle writes a config.json with the posture of the engine's containers.
// Its network namespace is an empty one: runc sets up none.
func (r *runc) writeBundle(dir string, args []string) error {
	seccomp, err := r.seccomp()
	if err != nil {
		return err
	}
	ids := []doc{{"hostID": idBase, "size": idSize}}
	data, err := json.Marshal(doc{
		"ociVersion": "1.0.2", "hostname": "bench", "root": doc{"path": r.root.Path}, "mounts": r.mounts(),
		"process": doc{
			"args": args, "env": []string{"PATH=/bin"}, "cwd": "/",
			"user": doc{"uid": contract.VcapID, "gid": contract.VcapID}, "capabilities": doc{}, "noNewPrivileges": true,
		},
		"linux": doc{
			"namespaces":  []doc{{"type": "user"}, {"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}},
			"uidMappings": ids, "gidMappings": ids,
			"resources": doc{
				"devices": []doc{{"allow": false, "access": "rwm"}}, "memory": doc{"limit": limits.MemoryBytes, "swap": limits.MemoryBytes},
				"cpu": doc{"shares": limits.CPUShares}, "pids": doc{"limit": limits.Pids},
			},
			"maskedPaths":   []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/pressure", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/security"},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			"seccomp":       seccomp,
		},
	})
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(dir+"/config.json", data, 0o644)
}

func (r *runc) mounts() []doc {
	mount := func(dest, kind, source, options string) doc {
		return doc{"destination": dest, "type": kind, "source": source, "options": strings.Split(options, ",")}
	}
	all := []doc{
		mount("/proc", "proc", "proc", "nosuid,nodev,noexec"),
		mount("/dev", "tmpfs", "tmpfs", "nosuid,noexec,mode=755,size=64k"),
		mount("/dev/pts", "devpts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5"),
		mount("/dev/shm", "tmpfs", "shm", "nosuid,nodev,noexec,mode=1777,size=64m"),
		mount("/sys", "sysfs", "sysfs", "nosuid,nodev,noexec,ro"),
		mount(contract.ProgramDir, "bind", r.path("helper"), "bind,nosuid,nodev,ro"),
	}
	for _, b := range r.root.Binds {
		if b.Source == "" {
			all = append(all, mount(b.Destination, "tmpfs", "tmpfs", "nosuid,nodev,ro,size=4k"))
			continue
		}
		all = append(all, mount(b.Destination, "bind", b.Source, "rbind,nosuid,nodev"))
	}
	return all
}

// syscallLine is a system call in the kernel's header.
var syscallLine = regexp.MustCompile(`(?m)^#define __NR_(\w+) (\d+)$`)

// seccomp allows what the engine's filter allows, on this architecture alone:
// the least that runc can be given to compile.
func (r *runc) seccomp() (doc, error) {
	program, err := os.ReadFile(r.path("helper/seccomp.bpf"))
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(program)/unix.SizeofSockFilter)
	if _, err := binary.Decode(program, binary.NativeEndian, filter); err != nil {
		return nil, err
	}
	header, err := os.ReadFile("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range syscallLine.FindAllStringSubmatch(string(header), -1) {
		if nr, err := strconv.Atoi(m[2]); err == nil && nr != unix.SYS_CLONE && allows(filter, uint32(nr)) {
			names = append(names, m[1])
		}
	}
	if !slices.Contains(names, "execve") {
		return nil, fmt.Errorf("the filter with %d calls was not understood", len(names))
	}
	return doc{
		"defaultAction": "SCMP_ACT_ERRNO", "architectures": []string{"SCMP_ARCH_X86_64"},
		"syscalls": []doc{
			{"names": names, "action": "SCMP_ACT_ALLOW"},
			{"names": []string{"clone"}, "action": "SCMP_ACT_ALLOW", "args": []doc{{"index": 0, "value": 0x7e020000, "op": "SCMP_CMP_MASKED_EQ"}}},
		},
	}, nil
}
