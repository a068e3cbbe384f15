package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// The oldest kernels: processes are watched through descriptors that do not block
// (PIDFD_NONBLOCK, 5.10), and 5.15 is the oldest tested.
var oldestKernel, triedKernel = version{5, 10}, version{5, 15}

type version [2]int

func (v version) String() string { return fmt.Sprintf("%d.%d", v[0], v[1]) }

func (v version) before(w version) bool { return v[0] < w[0] || v[0] == w[0] && v[1] < w[1] }

// parseVersion reads the first two numbers of a release like "6.1.0-18-amd64".
func parseVersion(release string) (v version, ok bool) {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return v, false
	}
	digits := func(s string) string {
		if end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			return s[:end]
		}
		return s
	}
	for i := range v {
		n, err := strconv.Atoi(digits(parts[i]))
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func (m *machine) kernel(context.Context) Result {
	fix := m.upgrade()
	release := m.read("proc/sys/kernel/osrelease")
	v, ok := parseVersion(release)
	switch {
	case !ok:
		return warning(fmt.Sprintf("cannot parse the kernel release %q", release), "uname -r   # "+oldestKernel.String()+" or later?")
	case v.before(oldestKernel):
		return failure(fmt.Sprintf("Linux %s is older than %s", release, oldestKernel), fix)
	case v.before(triedKernel):
		return warning(fmt.Sprintf("Linux %s is older than %s, the oldest tested", release, triedKernel), fix)
	}
	return fine("Linux " + release)
}

func (m *machine) seccomp(context.Context) Result {
	actions := m.read("proc/sys/kernel/seccomp/actions_avail")
	if actions == "" {
		return failure("the kernel has no system call filters", "boot a kernel with CONFIG_SECCOMP_FILTER=y: "+m.upgrade())
	}
	return fine("system call filters")
}

// engine reports what starts containers.
func (m *machine) engine(context.Context) Result {
	switch {
	case m.Engine == "launch" && m.NoLaunch == nil:
		return fine("launch starts containers")
	case m.Engine == "launch":
		return fine("runc starts containers: " + m.NoLaunch.Error())
	case m.NoLaunch == nil:
		return fine("runc starts containers; --engine launch is faster")
	}
	return fine("runc starts containers")
}

// modules lists the security modules that also restrict containers.
func (m *machine) modules(context.Context) Result {
	switch {
	case m.read("sys/fs/selinux/enforce") == "1":
		return warning("SELinux is enforcing; cupola sets no labels", "sudo setenforce 0   # if containers do not start; 'ausearch -m avc' lists denials")
	case m.read("sys/module/apparmor/parameters/enabled") == "Y" && m.read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return fine("AppArmor, which keeps unprivileged programs from user namespaces: cupola makes containers as root, and in them no program may make any")
	case m.read("sys/module/apparmor/parameters/enabled") == "Y":
		return fine("AppArmor, which does not confine cupola's containers")
	}
	return fine("neither SELinux nor AppArmor is enabled")
}
