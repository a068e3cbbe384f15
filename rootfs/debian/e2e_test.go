package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBuildFromHostMirror builds a real suite from the mirror of this machine,
// uses it, and builds it again from its lock. CUPOLA_TEST_DEBIAN=1 switches it
// on; CUPOLA_TEST_SUITE and CUPOLA_TEST_VARIANT choose another one than debian12 core.
func TestBuildFromHostMirror(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_DEBIAN") != "1" {
		t.Skip("needs CUPOLA_TEST_DEBIAN=1 and a Debian mirror")
	}
	suite, variant := os.Getenv("CUPOLA_TEST_SUITE"), os.Getenv("CUPOLA_TEST_VARIANT")
	if suite == "" {
		suite = "debian12"
	}
	dir := t.TempDir()
	if base := os.Getenv("CUPOLA_TEST_DIR"); base != "" {
		dir = base
	}
	o := Options{Suite: suite, Variant: variant, CacheDir: filepath.Join(dir, "cache"), Dest: filepath.Join(dir, "first"), Extras: testExtras()}
	cold := timedBuild(t, "cold", o)
	o.Dest, o.Lock = filepath.Join(dir, "second"), cold.Lock
	timedBuild(t, "from lock, warm cache", o)
	if a, b := fingerprintTree(t, cold.Dir), fingerprintTree(t, o.Dest); a != b {
		t.Errorf("got tree %s from the lock; want %s", b, a)
	}
	o.Dest, o.Lock = filepath.Join(dir, "third"), nil
	timedBuild(t, "warm cache", o)
	if os.Geteuid() != 0 {
		t.Skip("needs root to chroot")
	}
	if err := syscall.Mknod(filepath.Join(cold.Dir, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(cold.Dir, "dev/null"), 0o666); err != nil {
		t.Fatal(err)
	}
	commands := []string{
		"/bin/sh -c 'echo sh'", "bash --version", "perl -v", "git --version", "curl --version", "jq --version", "openssl version",
		"dpkg -l", "id vcap", "ls -ld /app /tmp /bin /home/vcap/app", "awk 'BEGIN{print 1}'", "/usr/sbin/ldconfig -p | grep libc.so.6",
		"openssl verify -CAfile /etc/ssl/certs/ca-certificates.crt /usr/share/ca-certificates/mozilla/ISRG_Root_X1.crt",
	}
	for _, c := range commands {
		if out := chroot(t, cold.Dir, c); out == "" {
			t.Errorf("%s: got no output", c)
		}
	}
}

func timedBuild(t *testing.T, what string, o Options) Result {
	t.Helper()
	start := time.Now()
	r, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.1f s, %d packages, %.1f MB downloaded, %.1f MB installed, warnings %q",
		what, time.Since(start).Seconds(), r.Packages, float64(r.DownloadedBytes)/1e6, float64(r.InstalledBytes)/1e6, r.Warnings)
	return r
}

func chroot(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.Command("/bin/bash", "-c", command)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin", "LANG=en_US.UTF-8", "HOME=/home/vcap"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: testUser, Gid: testUser}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("%s: %v: %s", command, err, out)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	t.Logf("%s: %s", command, first)
	return string(out)
}

// fingerprintTree hashes names, types, modes, owners, times, link targets and contents.
func fingerprintTree(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(dir, path)
		target, _ := os.Readlink(path)
		fmt.Fprintf(h, "%s %v %d:%d %v %q %d\n", rel, info.Mode(), st.Uid, st.Gid, info.ModTime().UTC(), target, st.Nlink)
		if !info.Mode().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
