package offline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"cupola/rootfs/unpack"
	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// engine returns the path of podman or docker; "" if there is none.
func engine() string {
	for _, name := range []string{"podman", "docker"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// bounds are flags of a container that runs code of releases.
var bounds = []string{"--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=512m", "--pids-limit=32"}

// patching runs the scripts that are its arguments, each after its name, and links the jobs to where they may expect them.
const patching = `set -e
at=/var/vcap/all-releases/jobs-src
[ -e "$at/$1" ] || { mkdir -p "$at" && ln -s /var/vcap/jobs-src "$at/$1"; } || true
shift
for shell in /bin/bash /usr/bin/bash /bin/sh; do [ -x "$shell" ] && break; done
while [ $# -gt 0 ]; do
  "$shell" -c "$2" || { echo "$1: exit code $?" >&2; exit 1; }
  shift 2
done`

// Patched reads a job after scripts have changed the files of a release image, as bosh.Resolver.Patched does: in a container of
// podman or docker.
func (l *Library) Patched(ctx context.Context, of manifest.Image, job string, by bosh.Patch) (release.Job, error) {
	with := engine()
	switch {
	case of.Archive != (manifest.Archive{}) || of.Local:
		return release.Job{}, errors.New("its pre_render_scripts run in a release image of a registry only, or in a daemon's sandbox: render without --offline")
	case with == "":
		return release.Job{}, errors.New("its pre_render_scripts need podman or docker, or a daemon's sandbox: render without --offline")
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	l.say("Running pre_render_scripts of %s in %s", job, of.Reference)
	name := "cupola-render-" + strings.ToLower(rand.Text())
	args := append([]string{"create", "--name", name, "--user=0:0", "--entrypoint=/bin/sh"}, bounds...)
	for _, c := range []string{"CHOWN", "DAC_OVERRIDE", "FOWNER"} { // as root has for files
		args = append(args, "--cap-add="+c)
	}
	args = append(args, "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", of.Reference, "-c", patching, "sh", by.Release)
	for _, s := range by.Scripts {
		args = append(args, s.Name, s.Text)
	}
	if err := said(exec.CommandContext(ctx, with, args...)); err != nil {
		return release.Job{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = exec.CommandContext(ctx, with, "rm", "--force", name).Run() // it holds nothing but a copy
	}()
	if err := said(exec.CommandContext(ctx, with, "start", "--attach", name)); err != nil {
		return release.Job{}, err
	}
	return l.copied(ctx, exec.CommandContext(ctx, with, "cp", name+":/"+jobsDir+"/"+job, "-"), job)
}

// copied reads a job from the archive that a command writes.
func (l *Library) copied(ctx context.Context, cmd *exec.Cmd, job string) (release.Job, error) {
	dir, err := os.MkdirTemp(l.dir, "patched-")
	if err != nil {
		return release.Job{}, err
	}
	var why tail
	cmd.Stderr = &why
	out, err := cmd.StdoutPipe()
	if err != nil {
		return release.Job{}, err
	}
	if err := cmd.Start(); err != nil {
		return release.Job{}, err
	}
	err = unpackInto(ctx, dir, out, unpack.Options{Limits: limits})
	_, rest := io.Copy(io.Discard, out)
	if ended := cmd.Wait(); ended != nil {
		return release.Job{}, fmt.Errorf("%s: %w: %s", cmd.Path, ended, why.last())
	}
	if err := errors.Join(err, rest); err != nil {
		return release.Job{}, err
	}
	j, err := l.opened(dir, dir, ".")
	if err != nil {
		return release.Job{}, err
	}
	return release.Read(j, job)
}

// said runs a command; the error ends with the last line that it wrote.
func said(cmd *exec.Cmd) error {
	var why tail
	cmd.Stderr = &why
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", cmd.Path, cmd.Args[1], err, why.last())
	}
	return nil
}
