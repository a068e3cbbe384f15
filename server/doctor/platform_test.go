package doctor

import (
	"maps"
	"strings"
	"testing"
)

// Facts of machines, as their files show them.
const (
	ownIDs      = "         0          0 4294967295"
	debian12    = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"
	ubuntu24    = "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\nID_LIKE=debian\n"
	fedora41    = "PRETTY_NAME=\"Fedora Linux 41 (Server Edition)\"\nID=fedora\n"
	rocky9      = "PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"
	archLinux   = "PRETTY_NAME=\"Arch Linux\"\nID=arch\n"
	alpine320   = "PRETTY_NAME=\"Alpine Linux v3.20\"\nID=alpine\n"
	leap15      = "PRETTY_NAME=\"openSUSE Leap 15.6\"\nID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n"
	wsl2Kernel  = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc (GCC) 11.2.0) #1 SMP"
	wsl1Kernel  = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1237-Microsoft"
	debKernel   = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0)"
	rootOn      = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
	drvfs       = "2 1 0:50 / /mnt/c rw,noatime - 9p drvfs rw\n"
	cgroupOpen  = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	cgroupShut  = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	writableSys = "proc/sys/net/ipv4/ip_forward"
)

// TestPlatforms reads the facts of machines, and wants what is degraded there, and the
// cure in the words of the machine.
func TestPlatforms(t *testing.T) {
	facts := func(release, version string, more ...map[string]string) map[string]string {
		all := map[string]string{"etc/os-release": release, "proc/version": version, "proc/self/uid_map": ownIDs, "proc/self/mountinfo": rootOn, "proc/1/comm": "systemd\n"}
		for _, m := range more {
			maps.Copy(all, m)
		}
		return all
	}
	privileged := map[string]string{"proc/self/mountinfo": rootOn + cgroupOpen, writableSys: "1"}
	for _, c := range []struct {
		name    string
		files   map[string]string
		dataDir string
		level   Level
		detail  string
		fix     string
		install string
		boot    string
	}{
		{"debian", facts(debian12, debKernel), "", OK, "Debian GNU/Linux 12 (bookworm)", "", "sudo apt-get install -y jq", "update-grub"},
		{"ubuntu", facts(ubuntu24, debKernel), "", OK, "Ubuntu 24.04.1 LTS", "", "sudo apt-get install -y jq", "update-grub"},
		{"fedora", facts(fedora41, debKernel), "", OK, "Fedora Linux 41", "", "sudo dnf install -y jq", "grubby --update-kernel=ALL --args=x=1"},
		{"rocky", facts(rocky9, debKernel), "", OK, "Rocky Linux 9.4", "", "sudo dnf install -y jq", "grubby"},
		{"arch", facts(archLinux, debKernel), "", OK, "Arch Linux", "", "sudo pacman -S --noconfirm jq", "grub-mkconfig -o /boot/grub/grub.cfg"},
		{"suse", facts(leap15, debKernel), "", OK, "openSUSE Leap", "", "sudo zypper install -y jq", "grub2-mkconfig"},
		{"alpine", facts(alpine320, debKernel, map[string]string{"lib/ld-musl-x86_64.so.1": ""}), "", OK, "programs built for glibc do not run", "", "sudo apk add jq", "update-extlinux"},
		{"debian with musl beside", facts(debian12, debKernel, map[string]string{"lib/ld-musl-x86_64.so.1": "", "lib/x86_64-linux-gnu/": ""}), "", OK, "bookworm)", "", "sudo apt-get", ""},
		{"nothing known", map[string]string{}, "", OK, "an unknown distribution", "", "install the package jq", "update-grub"},

		{"wsl 1", facts(ubuntu24, wsl1Kernel), "", Fail, "WSL 1, which has no Linux kernel", "wsl --set-version", "", ""},
		{"wsl 2", facts(ubuntu24, wsl2Kernel), "", OK, "Ubuntu 24.04.1 LTS on WSL 2. Browsers in Windows", "", "sudo apt-get", "kernelCommandLine = x=1"},
		{"wsl 2 without systemd", facts(ubuntu24, wsl2Kernel, map[string]string{"proc/1/comm": "init\n"}), "", Warn, "without systemd", "/etc/wsl.conf", "", ""},
		{"wsl 2 on a disk of windows", facts(ubuntu24, wsl2Kernel, map[string]string{"proc/self/mountinfo": rootOn + drvfs}), "/mnt/c/cupola", Fail, "a disk of Windows", "--data-dir /var/lib/cupola", "", ""},
		{"wsl 2 beside a disk of windows", facts(ubuntu24, wsl2Kernel, map[string]string{"proc/self/mountinfo": rootOn + drvfs}), "/mnt/cupola", OK, "on WSL 2", "", "", ""},

		{"docker", facts(debian12, debKernel, map[string]string{".dockerenv": "", "proc/self/mountinfo": rootOn + cgroupShut}), "", Fail, "container of docker without privileges: /sys/fs/cgroup cannot be written", "docker run --privileged --cgroupns=host", "", ""},
		{"docker, privileged", facts(debian12, debKernel, privileged, map[string]string{".dockerenv": ""}), "", OK, "container of docker: its end ends all apps", "", "", ""},
		{"docker, rootless", facts(debian12, debKernel, privileged, map[string]string{".dockerenv": "", "proc/self/uid_map": "0 1000 1\n1 100000 65536"}), "", Fail, "it has 1 + 65536 user IDs", "--privileged", "", ""},
		{"podman, rootless", facts(fedora41, debKernel, map[string]string{"run/.containerenv": "", "proc/self/uid_map": "0 1000 1\n1 524288 65536"}), "", Fail, "container of podman without privileges", "sudo podman run --privileged", "", ""},
		{"lxc, unprivileged", facts(ubuntu24, debKernel, map[string]string{"proc/1/environ": "TERM=linux\x00container=lxc\x00", "proc/self/uid_map": "0 1000000 65536"}), "", Fail, "container of lxc without privileges: it has 65536 user IDs", "security.privileged=true security.nesting=true", "", ""},
		{"lxc, privileged", facts(ubuntu24, debKernel, privileged, map[string]string{"proc/1/environ": "container=lxc\x00"}), "", OK, "container of lxc", "", "", ""},
		{"nspawn", facts(debian12, debKernel, map[string]string{"run/systemd/container": "systemd-nspawn\n", "proc/self/mountinfo": rootOn + cgroupShut, writableSys: "1"}), "", Fail, "/sys/fs/cgroup cannot be written", "systemd-nspawn --private-users=no", "", ""},
		{"nspawn on cgroup v1", facts(debian12, debKernel, map[string]string{"run/systemd/container": "systemd-nspawn\n", "proc/self/mountinfo": rootOn + "30 23 0:26 / /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids\n", writableSys: "1"}), "", Fail, "/sys/fs/cgroup/pids cannot be written", "remount,bind,rw", "", ""},
		{"user namespace", facts(debian12, debKernel, map[string]string{"proc/self/uid_map": "0 1000 1"}), "", Fail, "in a user namespace with 1 user IDs", "as root of the machine itself", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := files(t, c.files)
			if c.dataDir != "" {
				m.DataDir = c.dataDir
			}
			r := m.platform(t.Context())
			if r.Level != c.level || !strings.Contains(r.Detail, c.detail) || !strings.Contains(r.Fix, c.fix) || (r.Fix == "") != (r.Level == OK) {
				t.Errorf("got %s %q, fix %q; want %s %q, %q", r.Level, r.Detail, r.Fix, c.level, c.detail, c.fix)
			}
			if got := m.install("jq"); !strings.Contains(got, c.install) {
				t.Errorf("installs with %q; want %q", got, c.install)
			}
			if got := m.bootWith("x=1"); !strings.Contains(got, c.boot) {
				t.Errorf("boots with %q; want %q", got, c.boot)
			}
		})
	}
}

// TestPointToCause wants the fix of the cause alone, where root lacks privileges.
func TestPointToCause(t *testing.T) {
	list := func(root Level) []Result {
		return []Result{{"root", root, "r", "fix root"}, {"nftables", Fail, "netlink: operation not permitted", "modprobe"}, {"cgroup", Fail, "mkdir: read-only file system", "mount"}, {"disk", Fail, "full", "free"}, {"containers", Fail, "/proc/sys: read-only file system", "sudo mount -o remount,rw /proc/sys"}, {"names", OK, "operation not permitted", ""},
			{"quota", Fail, "make the stack minifs: lchown /d/fs: invalid argument", "--data-dir"}, {"cgroup", Fail, noCgroups, "mount"}}
	}
	got := list(Fail)
	pointToCause(got)
	for i, want := range []string{"fix root", "mend 'root' first", "mend 'root' first", "free", "remount", "", "mend 'root' first", "mend 'root' first"} {
		if !strings.Contains(got[i].Fix, want) || want == "" && got[i].Fix != "" {
			t.Errorf("%s: got the fix %q; want %q", got[i].Name, got[i].Fix, want)
		}
	}
	got = list(OK)
	if pointToCause(got); got[1].Fix != "modprobe" {
		t.Errorf("got %q though root lacks nothing", got[1].Fix)
	}
}
