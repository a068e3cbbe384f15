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

	"cupola/store"
	"cupola/store/cf"
)

// changed is a tree that a backup was extracted to, and a part of what changed since: an org
// with a droplet's file.
func changed(t *testing.T) (dir string, part []byte) {
	t.Helper()
	from := t.TempDir()
	s, err := store.Open(store.Config{Dir: from})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pages, err := s.FollowPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base, gather := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(base, "db"), 0o700), os.Mkdir(filepath.Join(gather, "db"), 0o700)); err != nil {
		t.Fatal(err)
	}
	taken, err := pages.Take(t.Context(), filepath.Join(base, "db", store.DatabaseFile), nil, true)
	key, kerr := os.ReadFile(filepath.Join(from, store.KeyFile))
	if err := errors.Join(err, kerr, os.WriteFile(filepath.Join(base, "db", store.KeyFile), key, 0o600)); err != nil || !taken.Whole {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		org := &cf.Org{Name: "since"}
		err := store.Orgs.Insert(tx, org)
		space := &cf.Space{Name: "dev", OrgGUID: org.GUID}
		err = errors.Join(err, store.Spaces.Insert(tx, space))
		app := &cf.App{Name: "hello", SpaceGUID: space.GUID, State: cf.Stopped}
		err = errors.Join(err, store.Apps.Insert(tx, app))
		return errors.Join(err, store.Droplets.Insert(tx, &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: sum(droplet)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if taken, err = pages.Take(t.Context(), filepath.Join(gather, PagesName), nil, false); err != nil || taken.Whole {
		t.Fatal(err)
	}
	blob := filepath.Join(gather, BlobName(sum(droplet)))
	if err := errors.Join(os.MkdirAll(filepath.Dir(blob), 0o700), os.WriteFile(blob, droplet, 0o600), os.WriteFile(filepath.Join(gather, "ca.pem"), []byte("ca"), 0o600)); err != nil {
		t.Fatal(err)
	}
	known := func(id string) bool { return strings.HasPrefix(id, "ca.pem ") }
	source, err := NewSource(t.Context(), gather, Manifest{Schema: taken.Schema, Pages: &taken.PageSet}, known)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := source.WriteTo(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return base, pack(t, b.Bytes())
}

// TestAPartIsApplied brings a tree up to date, and sees what a part lacks.
func TestAPartIsApplied(t *testing.T) {
	dir, part := changed(t)
	if _, err := Verify(t.Context(), bytes.NewReader(part), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no backup") {
		t.Errorf("a part was taken for a backup: %v", err)
	}
	for range 2 { // that a file is there already is no fault
		if _, err := Apply(t.Context(), bytes.NewReader(part), dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.pem")); err == nil {
		t.Error("the part has a file that was to be left out")
	}
	r, err := VerifyTree(t.Context(), dir, nil)
	if err != nil || len(r.Blobs) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(dir, BlobName(sum(droplet)))); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyTree(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "names the blob "+sum(droplet)) {
		t.Errorf("without a blob: %v", err)
	}
}

// TestADamagedPartIsRefused cuts a part off everywhere.
func TestADamagedPartIsRefused(t *testing.T) {
	_, part := changed(t)
	for at := 0; at < len(part); at += max(len(part)/17, 1) {
		dir := t.TempDir()
		err := errors.Join(os.Mkdir(filepath.Join(dir, "db"), 0o700), os.WriteFile(filepath.Join(dir, "db", store.DatabaseFile), nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(t.Context(), bytes.NewReader(part[:at]), dir); err == nil {
			t.Errorf("cut off at %d of %d: it was not seen", at, len(part))
		}
	}
}

// TestAHostilePartIsRefused forges parts, of which all digests are right.
func TestAHostilePartIsRefused(t *testing.T) {
	page := strings.Repeat("p", 512)
	pages := Member{PagesName, 512, sum([]byte(page))}
	set := &store.PageSet{PageSize: 512, Count: 1, Whole: true}
	evil := func(name string) Member { return Member{name, 4, sum([]byte("evil"))} }
	for name, c := range map[string]struct {
		set     *store.PageSet
		members []Member
		want    string
	}{
		"a backup":           {nil, []Member{evil("db/cupola.db"), evil("db/store.key")}, "not a part"},
		"pages in a backup":  {nil, []Member{pages, evil("db/store.key")}, "is not a part"},
		"no pages":           {set, nil, "are not there"},
		"too few pages":      {&store.PageSet{PageSize: 512, Count: 2, Whole: true}, []Member{pages}, "instead of 1024"},
		"a page beyond":      {&store.PageSet{PageSize: 512, Count: 1, Numbers: []uint32{2}}, []Member{pages}, "wrong place"},
		"another database":   {set, []Member{pages, evil("db/cupola.db")}, "none of a part"},
		"a volume":           {set, []Member{pages, evil(TreeName("db"))}, "none of a part"},
		"a path, leads away": {set, []Member{pages, evil("../../etc/evil")}, "none of a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []tar.Header
			var contents []string
			for _, m := range c.members {
				content := "evil"
				if m.Name == PagesName {
					content = page
				}
				entries, contents = append(entries, tar.Header{Name: m.Name}), append(contents, content)
			}
			part := forge(t, Manifest{Format: format, Pages: c.set, Members: c.members}, entries, contents...)
			if _, err := Apply(context.Background(), bytes.NewReader(part), t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}
