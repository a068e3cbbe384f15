package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
)

// distribution is the name of what is installed on this machine.
func (h host) distribution() string {
	if name := h.release("PRETTY_NAME"); name != "" {
		return name
	}
	return "an unknown distribution"
}

// release is a field of os-release(5).
func (h host) release(field string) string {
	text := h.read("etc/os-release")
	if text == "" {
		text = h.read("usr/lib/os-release")
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+"="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// musl reports whether this machine's C library is musl.
func (h host) musl() bool {
	for _, pattern := range []string{"lib/ld-musl-*.so.1", "usr/lib/ld-musl-*.so.1"} {
		if found, _ := filepath.Glob(h.path(pattern)); len(found) > 0 && !h.exists("lib/x86_64-linux-gnu") && !h.exists("lib64/ld-linux-x86-64.so.2") && !h.exists("lib/ld-linux-aarch64.so.1") {
			return true
		}
	}
	return false
}

// family is the family of distributions that this machine's is of, by how packages are
// installed.
func (h host) family() string {
	ids := append([]string{h.release("ID")}, strings.Fields(h.release("ID_LIKE"))...)
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
func (h host) install(pkg string) string {
	commands := map[string]string{"debian": "apt-get install -y", "fedora": "dnf install -y", "arch": "pacman -S --noconfirm", "alpine": "apk add", "suse": "zypper install -y"}
	if c := commands[h.family()]; c != "" {
		return "sudo " + c + " " + pkg
	}
	return "install the package " + pkg
}

// upgrade is the command that installs a newer kernel.
func (h host) upgrade() string {
	if h.wsl() > 0 {
		return "wsl --update   # in Windows, then: wsl --shutdown"
	}
	commands := map[string]string{"debian": "sudo apt-get update && sudo apt-get -y full-upgrade", "fedora": "sudo dnf upgrade -y", "arch": "sudo pacman -Syu --noconfirm", "alpine": "sudo apk upgrade -U", "suse": "sudo zypper update -y"}
	if c := commands[h.family()]; c != "" {
		return c + " && sudo reboot   # or a newer release of the distribution"
	}
	return "install a newer kernel of the distribution, or a newer release of it"
}

// bootWith is the command that adds a kernel parameter.
func (h host) bootWith(parameter string) string {
	if h.wsl() > 0 {
		return "add 'kernelCommandLine = " + parameter + "' below [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown   # in Windows"
	}
	grub := fmt.Sprintf(`sudo sed -i 's/^GRUB_CMDLINE_LINUX="/&%s /' /etc/default/grub && sudo `, parameter)
	switch h.family() {
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
