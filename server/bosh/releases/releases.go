package releases

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/suggest"
	"cupola/store"
	"cupola/store/cf"
)

// Keep adds a release that was read from a tarball. If its version is there, it must
// have the same jobs and packages: then it gains what only the tarball has, like
// packages compiled for another stemcell, and added is false. fix replaces the
// archives that are there.
func Keep(tx *store.Tx, r *cf.BOSHRelease, fix bool) (kept *cf.BOSHRelease, added bool, err error) {
	was, err := find(tx, r.Name, r.Version)
	if store.IsNotFound(err) {
		if err := share(tx, r, fix); err != nil {
			return nil, false, err
		}
		return r, true, store.BOSHReleases.Insert(tx, r)
	}
	if err != nil {
		return nil, false, err
	}
	if err := merge(was, r, fix); err != nil {
		return nil, false, err
	}
	if fix {
		if err := dropCompiled(tx, was); err != nil {
			return nil, false, err
		}
	}
	return was, false, store.BOSHReleases.Update(tx, was)
}

// share takes the archives of equal jobs and packages from the other versions of a
// release, so that each is kept and compiled once.
func share(tx *store.Tx, r *cf.BOSHRelease, fix bool) error {
	if fix {
		return nil
	}
	all, err := store.BOSHReleases.By(tx, "names", r.Name)
	if err != nil {
		return err
	}
	for _, other := range all {
		for i := range r.Jobs {
			if j := other.Job(r.Jobs[i].Name); j != nil && j.Fingerprint == r.Jobs[i].Fingerprint {
				r.Jobs[i].Digest = j.Digest
			}
		}
		for i := range r.Packages {
			if p := other.Package(r.Packages[i].Name); p != nil && p.Fingerprint == r.Packages[i].Fingerprint {
				mergePackage(&r.Packages[i], p, true)
			}
		}
	}
	return nil
}

// merge adds to a release what another upload of it has.
func merge(was, now *cf.BOSHRelease, fix bool) error {
	if len(was.Jobs) != len(now.Jobs) || len(was.Packages) != len(now.Packages) {
		return differs(was)
	}
	for i := range now.Jobs {
		j := was.Job(now.Jobs[i].Name)
		if j == nil || j.Fingerprint != now.Jobs[i].Fingerprint {
			return differs(was)
		}
		if fix {
			*j = now.Jobs[i]
		}
	}
	for i := range now.Packages {
		p := was.Package(now.Packages[i].Name)
		if p == nil || p.Fingerprint != now.Packages[i].Fingerprint {
			return differs(was)
		}
		mergePackage(p, &now.Packages[i], fix)
	}
	return nil
}

// mergePackage adds the archives of from to an equal package; replace prefers them.
func mergePackage(p, from *cf.BOSHReleasePackage, replace bool) {
	if p.Digest == "" || replace && from.Digest != "" {
		p.Digest = from.Digest
	}
	for _, c := range from.Compiled {
		at := slices.IndexFunc(p.Compiled, func(have cf.BOSHReleaseCompiled) bool { return have.OS == c.OS })
		switch {
		case at < 0:
			p.Compiled = append(p.Compiled, c)
		case replace:
			p.Compiled[at] = c
		}
	}
}

func differs(r *cf.BOSHRelease) error {
	return cf.Unprocessable("Release '%s/%s' already exists with other jobs or packages: delete it first, or give this one another version", r.Name, r.Version)
}

// dropCompiled removes what was compiled of a release, so that it is compiled again.
func dropCompiled(tx *store.Tx, r *cf.BOSHRelease) (err error) {
	for _, p := range r.Packages {
		err = errors.Join(err, store.BOSHCompiledPackages.DeleteBy(tx, "fingerprints", p.Fingerprint))
	}
	return err
}

func find(tx *store.Tx, name, version string) (*cf.BOSHRelease, error) {
	return store.BOSHReleases.First(tx, store.Query{Where: map[string][]string{"names": {name}, "versions": {version}}})
}

// Find is the release of a name and version, or of the latest version. The error
// lists what there is.
func Find(tx *store.Tx, name, version string) (*cf.BOSHRelease, error) {
	all, err := store.BOSHReleases.By(tx, "names", name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		every, err := store.BOSHReleases.All(tx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, r := range every {
			names = append(names, r.Name)
		}
		return nil, cf.Errorf(cf.ResourceNotFound, "Release '%s' doesn't exist%s", name, suggest.Hint(name, names))
	}
	slices.SortFunc(all, func(a, b *cf.BOSHRelease) int { return CompareVersions(a.Version, b.Version) })
	if version == "latest" {
		return all[len(all)-1], nil
	}
	var versions []string
	for _, r := range all {
		if r.Version == version {
			return r, nil
		}
		versions = append(versions, r.Version)
	}
	return nil, cf.Errorf(cf.ResourceNotFound, "Release version '%s/%s' doesn't exist; there is %s", name, version, strings.Join(versions, ", "))
}

// Delete deletes a release that no deployment uses, and what was compiled of it.
func Delete(tx *store.Tx, r *cf.BOSHRelease) error {
	users, err := store.BOSHSpecs.UsersOf(tx, r.Name, r.Version)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return cf.Unprocessable("Release '%s/%s' is still in use by: %s", r.Name, r.Version, strings.Join(users, ", "))
	}
	open, err := store.BOSHTasks.Open(tx)
	if err != nil {
		return err
	}
	for _, t := range open {
		if len(t.Plan) == 0 && t.Kind == "deploy" {
			return cf.Unprocessable("Release '%s/%s' may be used by task %d, which deploys %s: try again after it", r.Name, r.Version, t.Number, t.DeploymentName)
		}
	}
	if err := store.BOSHReleases.Delete(tx, r.GUID); err != nil {
		return err
	}
	return store.BOSHCompiledPackages.DropUnused(tx)
}

// CompareVersions compares versions of releases as BOSH does: parts of release,
// pre-release (after "-") and post-release (after "+"), each by its numbers, and
// numbers before texts.
func CompareVersions(a, b string) int {
	coreA, preA, postA := splitVersion(a)
	coreB, preB, postB := splitVersion(b)
	return cmp.Or(compareParts(coreA, coreB), comparePre(preA, preB), compareParts(postA, postB))
}

func splitVersion(v string) (core, pre, post string) {
	v, post, _ = strings.Cut(v, "+")
	core, pre, _ = strings.Cut(v, "-")
	return core, pre, post
}

// comparePre compares pre-releases: a version without one is the later.
func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	return compareParts(a, b)
}

func compareParts(a, b string) int {
	for a != "" || b != "" {
		var partA, partB string
		partA, a, _ = strings.Cut(a, ".")
		partB, b, _ = strings.Cut(b, ".")
		if c := comparePart(partA, partB); c != 0 {
			return c
		}
	}
	return 0
}

// comparePart compares numbers as numbers; a missing part is 0.
func comparePart(a, b string) int {
	numberA, errA := strconv.ParseUint(cmp.Or(a, "0"), 10, 64)
	numberB, errB := strconv.ParseUint(cmp.Or(b, "0"), 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(numberA, numberB)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}
