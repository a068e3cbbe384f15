package container

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// hostnameMax is the longest host name: Garden keeps the last 49 characters of
// the handle.
const hostnameMax = 49

// inits is how many processes a container has besides those it was limited to.
const inits = 1

// settings is what every container of an Engine has in common.
type settings struct {
	ids       IDMap  // of a container without its own users
	helperDir string // a read-only mount of its programs
	sysDir    string // a read-only sysfs without submounts
	devDir    string // what /dev holds
	parent    string // cgroup
	v2        bool
	nofile    uint64 // the daemon's own hard limit
	nproc     uint64 // likewise
	core      uint64 // likewise
}

// users are the users of the host that a container's are.
func (s settings) users(spec Spec) IDMap {
	if spec.Users != (IDMap{}) {
		return spec.Users
	}
	return s.ids
}

// libConfig returns libcontainer's configuration for spec, which joins the user
// namespace at the path userNS, and the cgroup namespace at cgroupNS or, if that
// is empty, one that libcontainer makes. It reads no state.
func (s settings) libConfig(spec Spec, userNS, cgroupNS string) *configs.Config {
	users := s.users(spec)
	ids := []configs.IDMap{{ContainerID: 0, HostID: int64(users.Base), Size: int64(users.Size)}}
	return &configs.Config{
		Rootfs:          filepath.Clean(spec.Rootfs),
		RootPropagation: unix.MS_PRIVATE | unix.MS_REC,
		Hostname:        hostname(spec),
		Namespaces:      namespaces(userNS, spec.NetNS, cgroupNS),
		UIDMappings:     ids,
		GIDMappings:     ids,
		Capabilities:    capabilities(spec.Process),
		NoNewPrivileges: true,
		OomScoreAdj:     new(oomScore),
		// A keyring per container would count against the 200 that the kernel
		// allows one mapped user; the seccomp filter denies all use of keys.
		NoNewKeyring:  true,
		Mounts:        s.mounts(spec),
		MaskPaths:     maskedPaths(),
		ReadonlyPaths: readonlyPaths(),
		Cgroups: &cgroups.Cgroup{
			Path:      filepath.Join("/", s.parent, placeOf(spec.Group, spec.ID)),
			Resources: &cgroups.Resources{SkipDevices: s.v2}, // cgroupTree makes the cgroup with its limits
		},
	}
}

// oomScore is what the processes of containers have, so that of what takes as
// much memory they end first, and the daemon, whose score they would inherit,
// last.
const oomScore = 100

func hostname(spec Spec) string {
	name := spec.Hostname
	if name == "" {
		name = spec.ID
	}
	return name[max(0, len(name)-hostnameMax):]
}

func namespaces(userNS, netNS, cgroupNS string) configs.Namespaces {
	return configs.Namespaces{
		{Type: configs.NEWUSER, Path: userNS}, {Type: configs.NEWNS}, {Type: configs.NEWPID},
		{Type: configs.NEWIPC}, {Type: configs.NEWUTS},
		{Type: configs.NEWNET, Path: netNS},
		{Type: configs.NEWCGROUP, Path: cgroupNS},
	}
}

// capabilities are for root the part of Garden's set that reaches neither
// devices, raw packets nor the audit log, and for a user what of it was asked for:
// ambient, so that its program has it too.
func capabilities(p Process) *configs.Capabilities {
	set := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_SETGID", "CAP_SETUID",
		"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
	}
	if p.UID == 0 {
		return &configs.Capabilities{Bounding: set, Effective: set, Permitted: set}
	}
	set = slices.DeleteFunc(set, func(name string) bool { return !slices.Contains(p.Capabilities, strings.TrimPrefix(name, "CAP_")) })
	return &configs.Capabilities{Bounding: set, Effective: set, Permitted: set, Inheritable: set, Ambient: set}
}

// rlimits are the limits of a process' resources as init takes them.
func (s settings) rlimits(p Process) string {
	limits := fmt.Sprintf("%d=%d", unix.RLIMIT_CORE, min(p.Core, s.core))
	if p.Nofile > 0 {
		limits += fmt.Sprintf(",%d=%d", unix.RLIMIT_NOFILE, min(p.Nofile, s.nofile))
	}
	if p.Nproc > 0 {
		limits += fmt.Sprintf(",%d=%d", unix.RLIMIT_NPROC, min(p.Nproc, s.nproc))
	}
	return limits
}

// deviceRules are those of the filter that all containers have on v2.
func deviceRules() []*devices.Rule {
	rules := []*devices.Rule{{Type: devices.WildcardDevice, Major: devices.Wildcard, Minor: devices.Wildcard, Permissions: "rwm"}}
	for _, d := range allowedDevices() {
		rules = append(rules, &devices.Rule{
			Type: devices.CharDevice, Major: d.major, Minor: d.minor, Permissions: "rwm", Allow: true,
		})
	}
	return rules
}
