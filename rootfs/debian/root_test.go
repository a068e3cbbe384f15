package debian

import (
	"archive/tar"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestBuildSetsShiftedOwners needs root: only root may change the owner of files.
func TestBuildSetsShiftedOwners(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	setgid := file("./usr/bin/setgid", 0o2755)
	setgid.Gid = shadowGID
	setuid := file("./usr/bin/setuid", 0o4755)
	a := newTestArchive(t, append(base(), testDeb{name: "zbits", version: "1", fields: "Essential: yes\n", files: []tar.Header{setgid, setuid}})...)
	for _, shift := range []uint32{0, 100_000} {
		o := a.options(t)
		o.IDShift = shift
		r, err := a.build(t, o)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]struct {
			uid, gid uint32
			mode     os.FileMode
		}{
			"":               {0, 0, os.ModeDir | 0o755},
			"usr/bin/setgid": {0, shadowGID, os.ModeSetgid | 0o755},
			"usr/bin/setuid": {0, 0, os.ModeSetuid | 0o755},
			"etc/shadow":     {0, shadowGID, 0o640},
			"home/vcap/app":  {testUser, testUser, os.ModeDir | 0o755},
			"app":            {0, 0, os.ModeSymlink | 0o777},
			"var/lib/dpkg":   {0, 0, os.ModeDir | 0o755},
		} {
			info, err := os.Lstat(filepath.Join(r.Dir, path))
			if err != nil {
				t.Error(err)
				continue
			}
			st := info.Sys().(*syscall.Stat_t)
			if st.Uid != want.uid+shift || st.Gid != want.gid+shift || info.Mode() != want.mode {
				t.Errorf("%q: got %d:%d %v; want %d:%d %v", path, st.Uid, st.Gid, info.Mode(), want.uid+shift, want.gid+shift, want.mode)
			}
		}
	}
}
