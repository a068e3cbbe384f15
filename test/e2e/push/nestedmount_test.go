package push

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// nestedMounts gives the machine its own /usr/local, as NFS and WSL2 do, with the program hello in it, and a file system
// below that.
const nestedMounts = `mount -t tmpfs -o mode=755 tmpfs /usr/local
mkdir -p /usr/local/bin /usr/local/etc /usr/local/deep
printf '#!/bin/sh\necho hello from a mount\n' >/usr/local/bin/hello
echo secret >/usr/local/etc/secret
mount -t tmpfs -o mode=1777 tmpfs /usr/local/deep
printf '#!/bin/sh\necho hello from deep\n' >/usr/local/deep/hello
cp /bin/true /usr/local/deep/setuid
chmod 4755 /usr/local/deep/setuid
chmod 755 /usr/local/bin/hello /usr/local/deep/hello`

// seesMounts runs on the host stack: what is mounted below /usr is there, and none of it can be written.
const seesMounts = `web: hello; /usr/local/deep/hello; touch /usr/local/deep/x 2>&1; ls -A /usr/local/etc | sed s/^/etc:/; grep ' /usr/local' /proc/self/mountinfo; echo seen; exec python3 -m http.server $PORT`

// TestNestedMounts stages and runs an app on the host stack of a machine with mounts below /usr.
func TestNestedMounts(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemonWithMounts(t, e2e.NeedBinary(t), nestedMounts, "--default-stack", "host", "--ssh", "off", "--tcp", "off")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/Procfile", []byte(seesMounts+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Push(dir, "applications:\n- name: nested\n  stack: host\n  buildpacks: [binary_buildpack]\n  memory: 64M\n  disk_quota: 64M\n  health-check-type: process\n")
	d.Logged("nested", "seen")
	lines := d.Client().LogLines(t.Context(), d.App("nested"))
	said := strings.Join(lines, "\n")
	for _, want := range []string{"hello from a mount", "hello from deep", "Read-only file system"} {
		if !strings.Contains(said, want) {
			t.Errorf("the app does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "etc:secret") {
		t.Errorf("the app sees /usr/local/etc:\n%s", said)
	}
	mounts := 0
	for _, line := range lines {
		at, options, found := strings.Cut(line, " /usr/local")
		if !found || !strings.Contains(at, ":") {
			continue
		}
		mounts++
		for _, option := range []string{"ro", "nosuid", "nodev"} {
			if !strings.Contains(","+strings.Fields(options + " x")[restOf(options)]+",", ","+option+",") {
				t.Errorf("mount without %s: %s", option, line)
			}
		}
	}
	if mounts < 2 {
		t.Errorf("got %d mounts below /usr/local; want 2 or more:\n%s", mounts, said)
	}
}

// restOf is the number of the field with a mount's options, after its mount point was cut at /usr/local.
func restOf(options string) int {
	if strings.HasPrefix(options, " ") {
		return 0
	}
	return 1
}

// hungMount mounts a file system whose server never answers.
const hungMount = `exec 9<>/dev/fuse
mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hung /usr/local`

// TestHungMount starts a daemon on a machine where a file system below /usr does not answer: apps of other stacks run, and
// the daemon names it.
func TestHungMount(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	d := e2e.StartDaemonWithMounts(t, binary, hungMount, "--ssh", "off", "--tcp", "off")
	d.PushProbe("beside")
	got := resultFor(t, "containers", e2e.WithMounts(hungMount, exec.CommandContext(t.Context(), binary, "doctor", "--json", "--data-dir", d.Dir)))
	if got.Level != "ok" || !strings.HasSuffix(got.Detail, " minifs") {
		t.Errorf("doctor: got %+v; want a container of minifs only", got)
	}
	e2e.Eventually(t, time.Minute, func() string {
		var list struct{ Resources []struct{ Name string } }
		d.API("GET", "/v3/stacks", nil, &list)
		for _, s := range list.Resources {
			if s.Name == "host" {
				return fmt.Sprintf("stacks are %v; want no host", list.Resources)
			}
		}
		return ""
	})
}
