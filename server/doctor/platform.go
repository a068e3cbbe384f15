package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// platform tells what kind of machine this is, and what that takes from containers:
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

// distribution is the name of what is installed on this machine.
func (m *machine) distribution() string {
	if name := m.release("PRETTY_NAME"); name != "" {
		return name
	}
	return "an unknown distribution"
}

// release is a field of os-release(5).
func (m *machine) release(field string) string {
	text := m.read("etc/os-release")
	if text == "" {
		text = m.read("usr/lib/os-release")
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+"="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// wsl is the version of the Windows Subsystem for Linux that this machine is; 0 if it
// is none. Its kernels name Microsoft, version 1 with a capital letter and no more.
func (m *machine) wsl() int {
	text := m.read("proc/version")
	switch {
	case !strings.Contains(strings.ToLower(text), "microsoft"):
		return 0
	case strings.Contains(text, "WSL2"), strings.Contains(text, "microsoft-standard"):
		return 2
	}
	return 1
}

// onWSL tells what is different on WSL 2.
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

// fileSystemOf is the type of the file system that a path is on.
func (m *machine) fileSystemOf(path string) (kind string) {
	best := -1
	for line := range strings.Lines(m.read("proc/self/mountinfo")) {
		left, right, ok := strings.Cut(line, " - ")
		at, what := strings.Fields(left), strings.Fields(right)
		if !ok || len(at) < 5 || len(what) < 1 {
			continue
		}
		point := at[4]
		if within := path == point || point == "/" || strings.HasPrefix(path, point+"/"); within && len(point) >= best {
			best, kind = len(point), what[0]
		}
	}
	return kind
}

// container is the engine whose container this is; "" if it is none.
func (m *machine) container() string {
	for line := range strings.SplitSeq(m.read("proc/1/environ"), "\x00") {
		if kind, ok := strings.CutPrefix(line, "container="); ok && kind != "" {
			return kind
		}
	}
	switch {
	case m.exists(".dockerenv"):
		return "docker"
	case m.exists("run/.containerenv"):
		return "podman"
	case m.exists("dev/lxd/sock"), m.exists("dev/incus/sock"):
		return "lxc"
	}
	return m.read("run/systemd/container")
}

// mappedIDs are how many user IDs this user namespace has; "" if it has all.
func (m *machine) mappedIDs() string {
	lines := strings.Split(m.read("proc/self/uid_map"), "\n")
	fields := strings.Fields(lines[0])
	if len(fields) != 3 || len(lines) == 1 && fields[2] == "4294967295" {
		return ""
	}
	var counts []string
	for _, l := range lines {
		if f := strings.Fields(l); len(f) == 3 {
			counts = append(counts, f[2])
		}
	}
	return strings.Join(counts, " + ")
}

// inContainer tells what another engine's container lacks.
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

// closed are the places that an engine opens in privileged containers alone.
func (m *machine) closed() (missing []string) {
	if m.exists("proc/sys/net/ipv4/ip_forward") && !m.writable("proc/sys/net/ipv4/ip_forward") {
		missing = append(missing, "/proc/sys")
	}
	h := m.hierarchies()
	root := h.unified
	if root == "" {
		root = h.v1["pids"]
	}
	if root != "" && m.readOnly(root) {
		missing = append(missing, root)
	}
	return missing
}

// readOnly reports whether something is mounted read-only at a place.
func (m *machine) readOnly(point string) (is bool) {
	for line := range strings.Lines(m.read("proc/self/mountinfo")) {
		f := strings.Fields(line)
		if len(f) > 5 && f[4] == point {
			is = strings.HasPrefix(f[5]+",", "ro,")
		}
	}
	return is
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

// musl reports whether this machine's C library is musl.
func (m *machine) musl() bool {
	for _, pattern := range []string{"lib/ld-musl-*.so.1", "usr/lib/ld-musl-*.so.1"} {
		if found, _ := filepath.Glob(m.path(pattern)); len(found) > 0 && !m.exists("lib/x86_64-linux-gnu") && !m.exists("lib64/ld-linux-x86-64.so.2") && !m.exists("lib/ld-linux-aarch64.so.1") {
			return true
		}
	}
	return false
}

// family is the family of distributions that this machine's is of, by how packages are
// installed.
func (m *machine) family() string {
	ids := append([]string{m.release("ID")}, strings.Fields(m.release("ID_LIKE"))...)
	for _, id := range ids {
		switch id {
		case "debian", "ubuntu":
			return "debian"
		case "fedora", "rhel", "centos", "amzn":
			return "fedora"
		case "arch", "alpine":
			return id
		case "suse", "opensuse":
			return "suse"
		}
	}
	return ""
}

// install is the command that installs a package, by its name in each family.
func (m *machine) install(pkg string) string {
	commands := map[string]string{"debian": "apt-get install -y", "fedora": "dnf install -y", "arch": "pacman -S --noconfirm", "alpine": "apk add", "suse": "zypper install -y"}
	if c := commands[m.family()]; c != "" {
		return "sudo " + c + " " + pkg
	}
	return "install the package " + pkg
}

// upgrade is the command that installs a newer kernel.
func (m *machine) upgrade() string {
	if m.wsl() > 0 {
		return "wsl --update   # in Windows, then: wsl --shutdown"
	}
	commands := map[string]string{"debian": "sudo apt-get update && sudo apt-get -y full-upgrade", "fedora": "sudo dnf upgrade -y", "arch": "sudo pacman -Syu --noconfirm", "alpine": "sudo apk upgrade -U", "suse": "sudo zypper update -y"}
	if c := commands[m.family()]; c != "" {
		return c + " && sudo reboot   # or a newer release of the distribution"
	}
	return "install a newer kernel of the distribution, or a newer release of it"
}

// bootWith is the command that adds a kernel parameter.
func (m *machine) bootWith(parameter string) string {
	if m.wsl() > 0 {
		return "add 'kernelCommandLine = " + parameter + "' below [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown   # in Windows"
	}
	grub := fmt.Sprintf(`sudo sed -i 's/^GRUB_CMDLINE_LINUX="/&%s /' /etc/default/grub && sudo `, parameter)
	switch m.family() {
	case "fedora":
		return "sudo grubby --update-kernel=ALL --args=" + parameter + " && sudo reboot"
	case "alpine":
		return fmt.Sprintf(`sudo sed -i 's/^default_kernel_opts="/&%s /' /etc/update-extlinux.conf && sudo update-extlinux && sudo reboot`, parameter)
	case "arch":
		return grub + "grub-mkconfig -o /boot/grub/grub.cfg && sudo reboot"
	case "suse":
		return grub + "grub2-mkconfig -o /boot/grub2/grub.cfg && sudo reboot"
	}
	return grub + "update-grub && sudo reboot"
}
