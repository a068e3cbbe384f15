package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// usage is what commands took.
type usage struct{ wall, cpu time.Duration }

// run runs a command and adds what it took. Its mounts end with it, and
// it finds no user's configuration.
func (u *usage) run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	u.wall += time.Since(begin)
	if s := cmd.ProcessState; s != nil {
		u.cpu += s.UserTime() + s.SystemTime()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out.Bytes())
	}
	return nil
}

// cleanMachine returns a function that removes what the commands keep outside
// their directories, unless it was there before.
func cleanMachine() func() {
	var fresh []string
	for _, dir := range []string{"/var/lib/containers", "/run/containers"} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			fresh = append(fresh, dir)
		}
	}
	return func() {
		for _, dir := range fresh {
			_ = os.RemoveAll(dir)
		}
	}
}

// reference names an image for the three. The zero value is none: the store is
// to be opened, and no more.
type reference struct{ host, repository string }

func (r reference) String() string { return r.host + "/" + r.repository + ":1" }

// cupolaPull is the command as it works where no daemon runs.
func cupolaPull(binary string) func(context.Context, string, reference) (usage, error) {
	return func(ctx context.Context, dir string, ref reference) (u usage, err error) {
		data := filepath.Join(dir, "data")
		if ref == (reference{}) {
			return u, errors.Join(os.Mkdir(data, 0o711), u.run(ctx, dir, binary, "stack", "ls", "--data-dir", data))
		}
		return u, u.run(ctx, dir, binary, "stack", "pull", ref.String(), "--data-dir", data)
	}
}

func podmanPull(ctx context.Context, dir string, ref reference) (u usage, err error) {
	args := []string{
		"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
		"--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
	}
	if ref == (reference{}) {
		return u, u.run(ctx, dir, "podman", append(args, "images")...)
	}
	return u, u.run(ctx, dir, "podman", append(args, "pull", "--quiet", "--tls-verify=false", ref.String())...)
}

// skopeoPull copies images into the same layout, which shares their layers, and unpacks
// each image into a separate bundle.
func skopeoPull(ctx context.Context, dir string, ref reference) (u usage, err error) {
	if ref == (reference{}) {
		return u, nil
	}
	layout := filepath.Join(dir, "layout") + ":" + filepath.Base(ref.repository)
	if err := u.run(ctx, dir, "skopeo", "copy", "--quiet", "--src-tls-verify=false", "docker://"+ref.String(), "oci:"+layout); err != nil {
		return u, err
	}
	return u, u.run(ctx, dir, "umoci", "unpack", "--image", layout, filepath.Join(dir, filepath.Base(ref.repository)))
}
