package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withVolume is a tree with what a volume holds, as an archive of a file, or as
// what is none.
func withVolume(t *testing.T, name string, sound bool) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "row", Mode: 0o600, Size: 4})
	if _, werr := w.Write([]byte("kept")); werr != nil {
		err = werr
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if !sound {
		b.Bytes()[0] ^= 1 // of a header, which has a sum
	}
	dir := tree(t)
	file := filepath.Join(dir, filepath.FromSlash(TreeName(name)))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVolumesAreVerified(t *testing.T) {
	dir := withVolume(t, "db", true)
	one := Volume{Name: "db", Bytes: 1 << 30}
	r, err := Verify(t.Context(), bytes.NewReader(pack(t, plain(t, dir, Manifest{Volumes: []Volume{one}}))), t.TempDir())
	if err != nil || len(r.Volumes) != 1 || r.Volumes[0] != one {
		t.Errorf("got %+v, %v", r.Volumes, err)
	}
	for name, c := range map[string]struct {
		volumes []Volume
		want    string
	}{
		"one that is not there": {[]Volume{one, {Name: "other", Bytes: 1}}, `the content of the volume "other" is not there`},
		"one twice":             {[]Volume{one, one}, "twice"},
		"one without a size":    {[]Volume{{Name: "db"}}, "has 0 bytes"},
		"an archive of none":    {nil, "belongs to no volume"},
		"a name that leads out": {[]Volume{one, {Name: "../../db", Bytes: 1}}, "is not there"},
	} {
		if _, err := NewSource(context.Background(), dir, Manifest{Volumes: c.volumes}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
	b := pack(t, plain(t, withVolume(t, "db", false), Manifest{Volumes: []Volume{one}}))
	if _, err := Verify(t.Context(), bytes.NewReader(b), t.TempDir()); err == nil || !strings.Contains(err.Error(), "volume-trees/db.tar: its archive is damaged") {
		t.Errorf("an archive that is none: got %v", err)
	}
}
