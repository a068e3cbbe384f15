package doctor

import (
	"context"
	"fmt"
	"strings"
)

// platform reports what kind of machine this is, and what that takes from containers:
// WSL, another engine's container, a C library that most programs are not built for.
func (m *machine) platform(context.Context) Result {
	name := m.distribution()
	switch {
	case m.wsl() == 1:
		return failure(name+" on WSL 1, which has no Linux kernel", "wsl --set-version DISTRIBUTION 2   # in Windows")
	case m.wsl() == 2:
		return m.onWSL(name)
	}
	if m.Elsewhere {
		return fine(name)
	}
	if kind := m.container(); kind != "" {
		return m.inContainer(name, kind)
	}
	if m.superuser && m.mappedIDs() == "" && len(m.closed()) > 0 {
		return m.inContainer(name, "an unknown engine")
	}
	if ids := m.mappedIDs(); ids != "" {
		return failure(fmt.Sprintf("%s in a user namespace with %s user IDs: containers need their own", name, ids), "run cupola as root of the machine itself")
	}
	if m.musl() {
		return fine(name + ", whose C library is musl: on the stack host, programs built for glibc do not run. A stack of Debian's packages runs them: sudo cupola stack build debian12")
	}
	return fine(name)
}

// onWSL reports what is different on WSL 2.
func (m *machine) onWSL(name string) Result {
	text := name + " on WSL 2"
	if kind := m.fileSystemOf(m.DataDir); kind == "9p" || kind == "drvfs" || kind == "v9fs" {
		return failure(fmt.Sprintf("%s, with the data directory %s on a disk of Windows, which has no owners of files and no overlays", text, m.DataDir), "sudo cupola serve --data-dir /var/lib/cupola   # on the disk of WSL")
	}
	if m.read("proc/1/comm") != "systemd" {
		return warning(text+" without systemd: 'cupola install' needs it, and the daemon ends with the last window", `printf '[boot]\nsystemd=true\n' | sudo tee -a /etc/wsl.conf   # then, in Windows: wsl --shutdown`)
	}
	return fine(text + ". Browsers in Windows reach http://localhost; WSL stops, and apps with it, some time after the last window is closed")
}

// inContainer reports what another engine's container lacks.
func (m *machine) inContainer(name, kind string) Result {
	text := fmt.Sprintf("%s in a container of %s", name, kind)
	if ids := m.mappedIDs(); ids != "" {
		return failure(fmt.Sprintf("%s without privileges: it has %s user IDs, and cupola's containers need their own", text, ids), privilegedIn(kind))
	}
	if missing := m.closed(); len(missing) > 0 {
		mend := privilegedIn(kind)
		if kind == "systemd-nspawn" && strings.HasPrefix(missing[0], "/sys/fs/cgroup/") {
			mend = "sudo sh -c 'for d in /sys/fs/cgroup/*; do mount -o remount,bind,rw $d; done'   # systemd-nspawn opens cgroup v2 alone"
		}
		return failure(fmt.Sprintf("%s without privileges: %s cannot be written", text, strings.Join(missing, " and ")), mend)
	}
	return fine(text + ": its end ends all apps")
}

// privilegedIn is how to give a container of an engine what cupola needs.
func privilegedIn(kind string) string {
	switch kind {
	case "lxc":
		return "lxc config set NAME security.privileged=true security.nesting=true && lxc restart NAME   # incus likewise; in Proxmox, unprivileged: 0 and features: nesting=1"
	case "systemd-nspawn":
		return "systemd-nspawn --private-users=no --capability=all --system-call-filter='add_key keyctl bpf' --bind=/dev/loop-control …   # or a virtual machine"
	case "podman", "oci":
		return "sudo podman run --privileged --cgroupns=host …   # by root: rootless containers cannot be enough"
	}
	if kind != "docker" {
		return "start the container with all capabilities, devices, and /proc/sys and cgroups writable: what docker run --privileged --cgroupns=host gives"
	}
	return "docker run --privileged --cgroupns=host --volume cupola:/var/lib/cupola …"
}

// loopsIn is how to give a container of an engine the loop devices that bound the disk
// of apps.
func loopsIn(kind string) string {
	if kind != "lxc" {
		return privilegedIn(kind)
	}
	return `add the lines 'lxc.cgroup2.devices.allow = b 7:* rwm' and 'lxc.cgroup2.devices.allow = c 10:237 rwm' to the container's configuration (Incus: to raw.lxc; cgroup v1: lxc.cgroup.devices.allow)`
}
