package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/admin/archive"
	"cupola/server/admin/steps"
	"cupola/store"
	"cupola/store/cf"
)

// spaceTar is the tar of a backup that has the service instance of withInstance, the app "shop" in its space, which has a droplet, the package of
// that and another one, and the app "other" in another space.
func spaceTar(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	if err := os.Mkdir(db, 0o700); err != nil {
		t.Fatal(err)
	}
	withInstance(t, db)
	s, err := store.Open(store.Config{Dir: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	of := func(guid string) cf.Resource { return cf.Resource{GUID: guid} }
	pkg := func(guid, app string) *cf.Package {
		return &cf.Package{Resource: of(guid), AppGUID: app, Type: "bits", State: cf.PackageReady, Digest: keepBlob(t, dir, guid)}
	}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(
			store.Spaces.Insert(tx, &cf.Space{Resource: of("elsewhere"), OrgGUID: "org", Name: "elsewhere"}),
			store.Apps.Insert(tx, &cf.App{Resource: of("shop"), SpaceGUID: "space", Name: "shop", State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}}),
			store.Apps.Insert(tx, &cf.App{Resource: of("other"), SpaceGUID: "elsewhere", Name: "other", State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}}),
			store.Packages.Insert(tx, pkg("used", "shop")), store.Packages.Insert(tx, pkg("unused", "shop")), store.Packages.Insert(tx, pkg("others", "other")),
			store.Droplets.Insert(tx, &cf.Droplet{Resource: of("droplet"), AppGUID: "shop", PackageGUID: "used", State: cf.DropletStaged, Digest: keepBlob(t, dir, "droplet")}),
			store.Apps.Update(tx, &cf.App{Resource: of("shop"), SpaceGUID: "space", Name: "shop", State: cf.Stopped, DropletGUID: "droplet", Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}}))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	schema, err := store.SchemaOf(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, filepath.Join(dir, archive.TreeName("data")), "the content")
	for _, name := range []string{"cupola.db-wal", "cupola.db-shm"} {
		_ = os.Remove(filepath.Join(db, name))
	}
	source, err := archive.NewSource(t.Context(), dir, archive.Manifest{Schema: schema, Volumes: []archive.Volume{{Name: "data", Bytes: 1}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := source.WriteTo(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// keepBlob makes the blob that has a text.
func keepBlob(t *testing.T, dir, text string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	keep(t, filepath.Join(dir, filepath.FromSlash(archive.BlobName(digest))), text)
	return digest
}

func keep(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestExtractSpace takes out of a backup what one space needs, and nothing of the others but their rows.
func TestExtractSpace(t *testing.T) {
	backup := spaceTar(t)
	found := func(*Space) error { return nil }
	dir := t.TempDir()
	space, err := ExtractSpace(t.Context(), dir, Source{Tar: bytes.NewReader(backup)}, SpaceName{Name: "s"}, nil, found, func(steps.Step) {})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	blobs, _ := filepath.Glob(filepath.Join(dir, "blobs/*/*"))
	for _, file := range append(blobs, space.Services["data"].Content) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	if got := strings.Join(texts, ","); got != "droplet,the content,used" {
		t.Errorf("got %s", got)
	}
	if space.GUID != "space" || space.Org != "o" || space.OrgGUID != "org" || space.Services["data"].Service != "redis" {
		t.Errorf("got %+v", space)
	}
	for want, c := range map[string]struct {
		name  SpaceName
		found error
	}{
		"no such space; it has: elsewhere of the org o; s of the org o": {SpaceName{Name: "s", Org: "p"}, nil},
		"it is there already": {SpaceName{Name: "s"}, errors.New("it is there already")},
	} {
		dir := t.TempDir()
		_, err := ExtractSpace(t.Context(), dir, Source{Tar: bytes.NewReader(backup)}, c.name, nil, func(*Space) error { return c.found }, func(steps.Step) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v; want %q", c.name, err, want)
		}
		if blobs, _ := filepath.Glob(filepath.Join(dir, "blobs/*/*")); len(blobs) > 0 {
			t.Errorf("%+v: got %v before it was asked", c.name, blobs)
		}
	}
}

// TestSpaceNames wants the org where the name is not unique.
func TestSpaceNames(t *testing.T) {
	all := []*Space{{GUID: "1", Name: "dev", Org: "o"}, {GUID: "2", Name: "dev", Org: "p"}}
	if _, err := (SpaceName{Name: "dev"}).of(all); err == nil || !strings.Contains(err.Error(), "2 spaces named dev: give --org") {
		t.Errorf("got %v", err)
	}
	if s, err := (SpaceName{Name: "dev", Org: "p"}).of(all); err != nil || s.GUID != "2" {
		t.Errorf("got %+v, %v", s, err)
	}
}
