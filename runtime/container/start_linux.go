package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cupola/runtime/container/starter"
	"cupola/runtime/contract"
)

// checkSpec finds what libcontainer would refuse only after its first effects.
func checkSpec(spec Spec, ids IDMap) error {
	if !validID(spec.ID) {
		return fmt.Errorf("start container %q: bad ID", spec.ID)
	}
	if spec.Process.UID >= ids.Size || spec.Process.GID >= ids.Size {
		return fmt.Errorf("start container %s: user %d:%d is not in the mapped range of %d IDs", spec.ID, spec.Process.UID, spec.Process.GID, ids.Size)
	}
	return checkRootfs(spec.Rootfs, ids)
}

// checkRootfs makes sure that the mapped root user can reach path: it has no
// rights of the host's root.
func checkRootfs(path string, ids IDMap) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("root file system %q is not an absolute path", path)
	}
	for dir := filepath.Dir(filepath.Clean(path)); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		owned := ok && (st.Uid == ids.Base || st.Gid == ids.Base)
		if info.Mode().Perm()&0o001 == 0 && !owned {
			return fmt.Errorf("user %d of containers cannot pass %s on the way to the root file system: chmod o+x %s", ids.Base, dir, dir)
		}
	}
	return nil
}

// validID allows what libcontainer allows.
func validID(id string) bool {
	const others = "_+-."
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(others, c) {
			return false
		}
	}
	return id != "" && id != "." && id != ".."
}

// command puts the helper before the process. The files in which it enrols
// itself come first among the inherited ones, from descriptor 3.
func (e *Engine) command(p Process, tasks []*os.File, tlsPorts []uint16) starter.Process {
	args := []string{contract.Init, "--seccomp", contract.ProgramDir + "/" + filterName}
	if len(tasks) > 0 {
		args = append(args, "--cgroup-fds", fdList(3, len(tasks)))
	}
	args = append(args, "--rlimits", e.shared.rlimits(p))
	if len(tlsPorts) > 0 {
		args = append(args, "--tls-ports", strings.Trim(strings.ReplaceAll(fmt.Sprint(tlsPorts), " ", ","), "[]"))
	}
	cwd := p.Cwd
	if cwd == "" {
		cwd = "/"
	}
	groups := make([]int, len(p.Groups))
	for i, g := range p.Groups {
		groups[i] = int(g)
	}
	return starter.Process{
		Args: append(append(args, "--"), p.Args...), Env: p.Env, Cwd: cwd,
		UID: int(p.UID), GID: int(p.GID), Groups: groups,
	}
}

func fdList(first, n int) string {
	var fds []string
	for i := range n {
		fds = append(fds, strconv.Itoa(first+i))
	}
	return strings.Join(fds, ",")
}

// chownStdio makes the process, of a container whose root is base, the owner of the
// FIFOs it writes to, so that it may open /dev/stdout. Others' files are left as
// they are.
func (e *Engine) chownStdio(base uint32, p Process, files ...*os.File) {
	for _, f := range files {
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			continue
		}
		if err := f.Chown(int(base+p.UID), int(base+p.GID)); err != nil && !errors.Is(err, os.ErrPermission) {
			e.log.Warn("output pipe kept its owner", "err", err)
		}
	}
}
