package stack

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
	"cupola/runtime/thread"
	"cupola/runtime/users"
)

const probeTimeout = 10 * time.Second

// probe runs bash in a stack, as an app would: a machine whose /usr cannot stand alone (Alpine, NixOS) shows it here.
// The mounts are made in a namespace of one thread, which ends with it, so that none can be left behind.
func probe(st Stack, ids users.Range) error {
	return thread.Throwaway("rootfs", func() error { return probeHere(st, ids) })
}

func probeHere(st Stack, ids users.Range) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, b := range st.binds {
		if err := unix.Mount(b.Source, filepath.Join(st.dirs[0], b.Destination), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", b.Source, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--version")
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: st.dirs[0], Credential: &syscall.Credential{Uid: ids.Host(contract.VcapID), Gid: ids.Host(contract.VcapID)}}
	out, err := cmd.CombinedOutput()
	first, _, _ := bytes.Cut(out, []byte("\n"))
	if err != nil {
		return fmt.Errorf("run /bin/bash: %w %s", err, first)
	}
	if !strings.Contains(string(first), "bash") {
		return fmt.Errorf("/bin/bash is not bash: it prints %q", first)
	}
	return nil
}
