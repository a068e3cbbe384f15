package releases

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func write(t *testing.T, s *store.Store, f func(tx *store.Tx) error) error {
	t.Helper()
	return s.Write(t.Context(), f)
}

// demo is a release with a job and a package, whose archives have the given digests.
func demo(version, fingerprint, digest string) *cf.BOSHRelease {
	return &cf.BOSHRelease{Name: "demo", Version: version, Jobs: []cf.BOSHReleaseJob{{Name: "web", Fingerprint: "j", Digest: "job-" + digest}},
		Packages: []cf.BOSHReleasePackage{{Name: "app", Fingerprint: fingerprint, Digest: "source-" + digest}}}
}

func TestKeep(t *testing.T) {
	s := open(t)
	keep := func(r *cf.BOSHRelease, fix bool) (kept *cf.BOSHRelease, added bool, err error) {
		err = write(t, s, func(tx *store.Tx) (err error) {
			kept, added, err = Keep(tx, r, fix)
			return err
		})
		return kept, added, err
	}
	if _, added, err := keep(demo("1", "a", "1"), false); err != nil || !added {
		t.Fatalf("got %v, %v", added, err)
	}
	if r, added, err := keep(demo("1", "a", "other"), false); err != nil || added || r.Packages[0].Digest != "source-1" {
		t.Errorf("got %+v, %v, %v; want the archives that were there", r, added, err)
	}
	if _, _, err := keep(demo("1", "b", "2"), false); err == nil || !strings.Contains(err.Error(), "Release 'demo/1' already exists with other jobs or packages") {
		t.Errorf("got %v", err)
	}
	if r, added, err := keep(demo("2", "a", "2"), false); err != nil || !added || r.Packages[0].Digest != "source-1" || r.Jobs[0].Digest != "job-1" {
		t.Errorf("got %+v, %v, %v; want the archives of version 1", r, added, err)
	}
	compiled := demo("1", "a", "")
	compiled.Packages[0].Digest, compiled.Packages[0].Compiled = "", []cf.BOSHReleaseCompiled{{OS: "ubuntu-jammy", Digest: "compiled"}}
	if r, _, err := keep(compiled, false); err != nil || r.Packages[0].Digest != "source-1" || r.Packages[0].CompiledFor("ubuntu-jammy") != "compiled" {
		t.Errorf("got %+v, %v; want both the source and the compiled package", r, err)
	}
	if r, _, err := keep(demo("1", "a", "fixed"), true); err != nil || r.Packages[0].Digest != "source-fixed" || r.Jobs[0].Digest != "job-fixed" {
		t.Errorf("got %+v, %v; want the new archives", r, err)
	}
	named := map[string]bool{}
	if err := s.Read(t.Context(), func(tx *store.Tx) error { return tx.NamedBlobs(named) }); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"job-fixed", "source-fixed", "compiled", "job-1", "source-1"} {
		if !named[digest] {
			t.Errorf("the blob %s is not named: %v", digest, named)
		}
	}
}

func TestFind(t *testing.T) {
	s := open(t)
	err := write(t, s, func(tx *store.Tx) (err error) {
		for _, version := range []string{"1.10", "1.9", "1.11-rc.1"} {
			_, _, fault := Keep(tx, demo(version, "a", "1"), false)
			err = errors.Join(err, fault)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"demo/1.9": "1.9", "demo/latest": "1.11-rc.1", "demo/2": "there is 1.9, 1.10, 1.11-rc.1", "demmo/1": `Release 'demmo' doesn't exist (did you mean "demo"?)`} {
		name, version, _ := strings.Cut(id, "/")
		got := ""
		if err := s.Read(t.Context(), func(tx *store.Tx) error {
			r, err := Find(tx, name, version)
			if err == nil {
				got = r.Version
			}
			return err
		}); err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %s; want %s", id, got, want)
		}
	}
}

// A release stays while an instance runs it, or is to.
func TestDelete(t *testing.T) {
	s := open(t)
	var r *cf.BOSHRelease
	remove := func() error { return write(t, s, func(tx *store.Tx) error { return Delete(tx, r) }) }
	err := write(t, s, func(tx *store.Tx) (err error) {
		if r, _, err = Keep(tx, demo("1", "a", "1"), false); err != nil {
			return err
		}
		d := &cf.BOSHDeployment{Name: "site"}
		if err := store.BOSHDeployments.Insert(tx, d); err != nil {
			return err
		}
		i := &cf.BOSHInstance{DeploymentGUID: d.GUID, Group: "web", Lifecycle: "service", Phase: cf.BOSHStopped, Goal: cf.BOSHStarted, Next: "spec"}
		if err := store.BOSHInstances.Insert(tx, i); err != nil {
			return err
		}
		return errors.Join(
			store.BOSHSpecs.Insert(tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: "spec"}, InstanceGUID: i.GUID, Text: []byte("{}"), Releases: []string{"demo/1"}, Blobs: []string{"mounted"}}),
			store.BOSHCompiledPackages.Insert(tx, &cf.BOSHCompiledPackage{Name: "app", Fingerprint: "a", Stack: "s", Digest: "here"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err == nil || err.Error() != "Release 'demo/1' is still in use by: site" {
		t.Errorf("got %v", err)
	}
	named := map[string]bool{}
	err = write(t, s, func(tx *store.Tx) error {
		if err := tx.NamedBlobs(named); err != nil {
			return err
		}
		d, err := store.BOSHDeployments.First(tx, store.Query{})
		if err != nil {
			return err
		}
		if err := store.BOSHDeployments.Delete(tx, d.GUID); err != nil {
			return err
		}
		return errors.Join(store.BOSHSpecs.DropUnused(tx), store.BOSHTasks.Insert(tx, &cf.BOSHTask{DeploymentName: "new", Kind: "deploy", State: cf.BOSHProcessing}))
	})
	if err != nil || !named["mounted"] || !named["here"] {
		t.Fatalf("got %v, %v", named, err)
	}
	if err := remove(); err == nil || !strings.Contains(err.Error(), "may be used by task 1, which deploys new") {
		t.Errorf("got %v", err)
	}
	err = write(t, s, func(tx *store.Tx) error {
		task, err := store.BOSHTasks.First(tx, store.Query{})
		if err != nil {
			return err
		}
		return store.BOSHTasks.Delete(tx, task.GUID)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	err = s.Read(t.Context(), func(tx *store.Tx) error {
		left, err := store.BOSHCompiledPackages.All(tx)
		if len(left) > 0 {
			t.Errorf("got %+v; want no compiled packages", left)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCompareVersions(t *testing.T) {
	want := []string{"0+dev.1", "0+dev.2", "0+dev.10", "1-rc.1", "1-rc.2", "1", "1.0.1", "1.2", "1.10", "1.10+dev.1", "2-x", "2", "x"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, CompareVersions)
	if !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
