package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtractSome extracts the database alone: out of a file that is read whole, and out of a tar of which only that is. There, what
// is damaged elsewhere does not matter.
func TestExtractSome(t *testing.T) {
	sound := plain(t, withVolume(t, "db", true), Manifest{Version: "1", Volumes: []Volume{{Name: "db", Bytes: 1 << 30}}})
	damaged := bytes.Clone(sound)
	damaged[bytes.Index(damaged, droplet)] ^= 1
	for _, c := range []struct {
		name   string
		backup []byte
		err    string // of the file
	}{{"sound", sound, ""}, {"damaged elsewhere", damaged, "the backup is damaged: blobs/"}} {
		for _, file := range []bool{true, false} {
			dir, want := t.TempDir(), ""
			var m Manifest
			var err error
			if file {
				want = c.err
				m, err = ExtractSome(t.Context(), bytes.NewReader(pack(t, c.backup)), dir, IsDatabase)
			} else {
				m, err = ExtractSomeOfTar(t.Context(), bytes.NewReader(c.backup), dir, IsDatabase)
			}
			if m.Version != "1" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, file %v: got %+v, %v; want %q", c.name, file, m, err, want)
			}
			if err != nil {
				continue
			}
			if got, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(got) != 2 {
				t.Errorf("%s, file %v: got %v; want the database and its key", c.name, file, got)
			}
			if _, err := os.Stat(filepath.Join(dir, "db", "cupola.db")); err != nil {
				t.Error(err)
			}
		}
	}
}
