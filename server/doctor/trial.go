package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/rootfs/overlay"
)

// containers starts a container of each of the machine's own stacks, as a cell does.
func (m *machine) containers(ctx context.Context) Result {
	if !m.superuser {
		return warning("not checked: starting a container needs root", "sudo cupola doctor")
	}
	var outcomes map[string]error
	err := m.try(func(dir string) (err error) {
		outcomes, err = m.Trial(ctx, dir)
		return err
	})
	below, _ := overlay.MountsBelow("/usr") // only for the advice
	return judgeContainers(outcomes, err, below)
}

// judgeContainers judges what went wrong with the containers of stacks, and with what they all need. below are the mount
// points below /usr.
func judgeContainers(outcomes map[string]error, err error, below []string) Result {
	if err != nil {
		return failure("containers do not start: "+err.Error(), cureOf(err.Error(), below))
	}
	var started, broken []string
	var fix string
	for _, stack := range slices.Sorted(maps.Keys(outcomes)) {
		if cause := outcomes[stack]; cause != nil {
			broken = append(broken, fmt.Sprintf("a container of the stack %s does not start: %v", stack, cause))
			fix = cureOf(cause.Error(), below)
		} else {
			started = append(started, stack)
		}
	}
	if len(broken) > 0 {
		return failure(strings.Join(broken, "; "), fix)
	}
	return fine("started and ended one of the stacks " + strings.Join(started, ", "))
}

// causes are what a container's error tells of the machine, and how to mend it; the first that fits.
var causes = []struct {
	words []string // all in the error
	fix   string
}{
	{[]string{"/proc/sys", "read-only file system"}, "sudo mount -o remount,rw /proc/sys   # in a container: run it --privileged"},
	{[]string{"read-only file system"}, "make the file system in the error writable, or choose another --data-dir"},
	{[]string{"overlay", "no such device"}, "sudo modprobe overlay"},
	{[]string{"overlay"}, "put --data-dir on ext4, xfs or btrfs of this machine itself"},
	{[]string{"does not let other users pass"}, "run the chmod in the error, or choose another --data-dir"},
	{[]string{"no space left"}, "free space on the disk of --data-dir, or raise sysctl user.max_user_namespaces and user.max_mnt_namespaces"},
	{[]string{"netlink"}, "sudo modprobe -a veth nf_tables"},
	{[]string{"nftables"}, "sudo modprobe -a veth nf_tables"},
	{[]string{"permission denied"}, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # or see 'security' above"},
	{[]string{"user namespace", "operation not permitted"}, "run cupola on the machine itself, with systemd-nspawn instead of chroot, or in a container that is --privileged"},
	{[]string{"operation not permitted"}, "run cupola on the machine itself, or in a container that is --privileged"},
}

// cureOf is how to mend the machine of an error.
func cureOf(cause string, below []string) string {
	cause = strings.ToLower(cause)
	if strings.Contains(cause, `mounting "/usr"`) && strings.Contains(cause, "invalid argument") && len(below) > 0 {
		return "sudo umount " + strings.Join(below, " ") + "   # or boot Linux 5.12 or later, which can show containers mounts below /usr"
	}
	for _, c := range causes {
		if !slices.ContainsFunc(c.words, func(word string) bool { return !strings.Contains(cause, word) }) {
			return c.fix
		}
	}
	return "mend what fails above; if all else is OK, run 'sudo cupola serve --debug' and read what its log says of the container"
}
