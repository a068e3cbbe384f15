package store

import "cupola/store/cf"

// BOSHReleases are the releases of BOSH's that were uploaded.
var BOSHReleases = &Table[cf.BOSHRelease]{table{
	name: "bosh_releases", singular: "Release",
	columns: "guid, created_at, updated_at, name, version, commit_hash, uncommitted, jobs, packages",
	fields: fieldsOf(func(v *cf.BOSHRelease, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Version, &v.CommitHash, &v.Uncommitted, jsonColumn{&v.Jobs}, jsonColumn{&v.Packages}}
	}),
	resource: resourceOf(func(v *cf.BOSHRelease) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "names": "name", "versions": "version"},
	orders:   map[string]string{"name": "name"},
}}

// BOSHCompiledPackages are the packages that were compiled here.
var BOSHCompiledPackages = boshCompiledPackages{&Table[cf.BOSHCompiledPackage]{table{
	name: "bosh_compiled_packages", singular: "Compiled package",
	columns: "guid, created_at, updated_at, name, fingerprint, stack, digest, size",
	fields: fieldsOf(func(v *cf.BOSHCompiledPackage, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Fingerprint, &v.Stack, &v.Digest, &v.Size}
	}),
	resource: resourceOf(func(v *cf.BOSHCompiledPackage) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "fingerprints": "fingerprint"},
}}}

type boshCompiledPackages struct {
	*Table[cf.BOSHCompiledPackage]
}

// DropUnused removes the compiled packages that no release has the source of.
func (boshCompiledPackages) DropUnused(tx *Tx) error {
	_, err := tx.exec("DELETE FROM bosh_compiled_packages WHERE fingerprint NOT IN" +
		" (SELECT coalesce(json_extract(p.value, '$.Fingerprint'), '') FROM bosh_releases r, json_each(r.packages) p)")
	return err
}
