package backup

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/admin/archive"
	"cupola/server/databroker"
	"cupola/store"
	"cupola/store/cf"
)

// TestVolumesWithChanges restores what a backup has of service instances of which, since, one was
// deleted, one got more room and one was created.
func TestVolumesWithChanges(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "db")})
	if err != nil {
		t.Fatal(err)
	}
	var large int64
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		for _, guid := range []string{"grown", "new"} {
			i := &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: "postgres", Plan: "large", State: cf.DataReady}
			if err := store.DataInstances.Insert(tx, i); err != nil {
				return err
			}
			spec, _ := databroker.Volume(i)
			large = spec.Bytes
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := &restore{dir: dir, report: archive.Report{Manifest: archive.Manifest{Volumes: []archive.Volume{{Name: "deleted", Bytes: 1}, {Name: "grown", Bytes: 1, Shared: true}}}}}
	if err := r.updateVolumes(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := archive.Manifest{Volumes: []archive.Volume{{Name: "grown", Bytes: large, Shared: true}},
		Left: []archive.Left{{Kind: "volume", Name: "new", Origin: "of a service instance of postgres, created since the backup"}}}
	if diff := cmp.Diff(want, r.report.Manifest); diff != "" || large <= 1 {
		t.Error(diff)
	}
}
