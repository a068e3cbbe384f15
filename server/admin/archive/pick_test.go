package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/store"
)

// TestPick takes a volume out of a backup that is read whole, and out of one of which only the needed members are: there, what
// is damaged elsewhere does not matter.
func TestPick(t *testing.T) {
	sound := plain(t, withVolume(t, "db", true), Manifest{Version: "1", Volumes: []Volume{{Name: "db", Bytes: 1 << 30}}})
	damaged := func(what string) []byte {
		b := bytes.Clone(sound)
		at := bytes.Index(b, []byte(what))
		if at < 0 {
			t.Fatalf("the backup has no %q", what)
		}
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		backup       []byte
		volume       string
		fault        error  // of Choose
		file, inPart string // errors; "" for none
	}{
		"sound":               {sound, "db", nil, "", ""},
		"another damaged":     {damaged(string(droplet)), "db", nil, "the backup is damaged: blobs/", ""},
		"the volume damaged":  {damaged("kept"), "db", nil, "the backup is damaged: volume-trees/db.tar", "the backup is damaged: volume-trees/db.tar"},
		"the database":        {damaged("SQLite format 3"), "db", nil, "the backup is damaged: db/cupola.db", "the backup is damaged: db/cupola.db"},
		"no such volume":      {sound, "other", nil, "does not have the volume other", "does not have the volume other"},
		"nobody knows it":     {sound, "", errors.New("no such instance"), "no such instance", "no such instance"},
		"cut before the end":  {sound[:len(sound)-2048], "db", nil, "the backup is cut off", "the backup is cut off"},
		"cut in the manifest": {sound[:600], "db", nil, "the backup is cut off", "the backup is cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			try := func(want string, read func(p *Picker) error) {
				t.Helper()
				var got bytes.Buffer
				p := &Picker{Dir: t.TempDir(), To: &got}
				p.Choose = func(m Manifest) (string, error) {
					_, err := os.Stat(filepath.Join(p.Dir, store.DatabaseFile))
					if m.Version != "1" {
						t.Errorf("got the manifest %+v", m)
					}
					return c.volume, errors.Join(err, c.fault)
				}
				err := read(p)
				if want == "" && (err != nil || !strings.Contains(got.String(), "kept")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("got %v, %d bytes; want %q", err, got.Len(), want)
				}
			}
			try(c.file, func(p *Picker) error { return p.File(t.Context(), bytes.NewReader(pack(t, c.backup))) })
			try(c.inPart, func(p *Picker) error { return p.Tar(t.Context(), bytes.NewReader(c.backup)) })
		})
	}
}
