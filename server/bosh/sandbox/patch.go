package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

	"cupola/rootfs/root"
	"cupola/runtime/container"
	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// allReleases is where the operator that had scripts first kept the jobs of
// releases, each below the release's name.
const allReleases = "var/vcap/all-releases/jobs-src"

// patchBytes is how much the scripts of a job may write.
const patchBytes = 256 << 20

// Patched reads a job after scripts have changed the files of the image: a copy
// that goes with it. Each script is a container's, as its root, with nothing but
// the image and a shell, and with the bounds of all runs.
func (s *Sandbox) Patched(ctx context.Context, images *Images, image manifest.Image, job string, by bosh.Patch) (release.Job, error) {
	img, err := images.image(ctx, image)
	if err != nil {
		return release.Job{}, err
	}
	var patched release.Job
	err = s.with(ctx, root.Request{Stack: img.pinned, Layers: img.layers, DiskBytes: patchBytes, Inodes: inodes}, func(m mounted) error {
		patched, err = s.patch(ctx, m, job, by)
		return err
	})
	return patched, err
}

// patch runs the scripts in a root, one after another, and reads the job.
func (s *Sandbox) patch(ctx context.Context, m mounted, job string, by bosh.Patch) (release.Job, error) {
	root, err := os.OpenRoot(m.Path)
	if err != nil {
		return release.Job{}, err
	}
	defer root.Close()
	if err := linkReleases(root, by.Release); err != nil {
		return release.Job{}, err
	}
	sh := shell(root.FS())
	for _, script := range by.Scripts {
		if err := s.script(ctx, m, sh, script); err != nil {
			return release.Job{}, fmt.Errorf("%s: %w", script.Name, err)
		}
	}
	return release.Read(root.FS(), job)
}

// linkReleases links the image's jobs to the path where scripts expect them.
func linkReleases(root *os.Root, release string) error {
	if err := root.MkdirAll(allReleases, 0o755); err != nil {
		return fmt.Errorf("make /%s: %w", allReleases, err)
	}
	at := path.Join(allReleases, release)
	if _, err := root.Lstat(at); err == nil {
		return nil // the image has them there itself
	}
	return root.Symlink("/var/vcap/jobs-src", at)
}

// shell is bash, for which the scripts of others are written, or the image's sh.
func shell(image fs.FS) string {
	for _, bash := range []string{"bin/bash", "usr/bin/bash"} {
		if _, err := fs.Stat(image, bash); err == nil {
			return "/" + bash
		}
	}
	return "/bin/sh"
}

func (s *Sandbox) script(ctx context.Context, m mounted, sh string, script bosh.Script) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Time, errTime)
	defer cancel()
	r := &running{Sandbox: s, id: m.id, what: "the script"}
	defer r.remove(ctx)
	_, err := r.run(ctx, container.Spec{
		ID: r.id, Rootfs: m.Path, Mounts: mounts(m.Root), Users: container.IDMap(m.users),
		Process: container.Process{Args: []string{sh, "-c", script.Text}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}, Nofile: maxFiles},
		Limits:  container.Limits{MemoryBytes: s.cfg.MemoryBytes, CPUShares: cpuShares, Pids: maxProcesses},
	}, nil)
	return err
}

// remove takes the container away, and leaves its root.
func (r *running) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := r.cfg.Containers.Remove(ctx, r.id); err != nil {
		r.cfg.Log.WarnContext(ctx, "sandbox was not taken away", "id", r.id, "err", err)
	}
}
