package store

// BlobKind is the blobs that rows of one kind name.
type BlobKind struct {
	Name    string
	Digests []string
}

// BuildCacheBlobs is the kind of what stagings left for the next ones.
const BuildCacheBlobs = "build caches"

// blobKinds are the rows that name blobs, by what people call these.
var blobKinds = []struct{ name, query string }{
	{"packages", "SELECT digest FROM packages"},
	{"droplets", "SELECT digest FROM droplets"},
	{"buildpacks", "SELECT digest FROM buildpacks"},
	{BuildCacheBlobs, "SELECT digest FROM build_caches"},
	{"files of uploads", "SELECT digest FROM resources WHERE entry = ''"},
	{"backups of services", "SELECT digest FROM data_backups"},
	{"BOSH releases", `SELECT digest FROM bosh_compiled_packages UNION SELECT coalesce(b.value, '') FROM bosh_specs s, json_each(s.blobs) b
		UNION SELECT coalesce(json_extract(j.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.jobs) j
		UNION SELECT coalesce(json_extract(p.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.packages) p
		UNION SELECT coalesce(json_extract(c.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.packages) p, json_each(p.value, '$.Compiled') c`},
	{"results of tasks", "SELECT coalesce(json_extract(o.value, '$.Digest'), '') FROM lrp_tasks t, json_each(t.outputs) o"},
}

// BlobKinds lists every blob that a row names, by kind. Several kinds may name the
// same blob.
func (tx *Tx) BlobKinds() (all []BlobKind, err error) {
	for _, k := range blobKinds {
		digests, err := tx.texts(k.query)
		if err != nil {
			return nil, err
		}
		all = append(all, BlobKind{k.name, digests})
	}
	return all, nil
}

// NamedBlobs adds the digest of every blob that a row names.
func (tx *Tx) NamedBlobs(named map[string]bool) error {
	kinds, err := tx.BlobKinds()
	for _, k := range kinds {
		for _, digest := range k.Digests {
			named[digest] = true
		}
	}
	return err
}

// NamedImages are the references of the images that something runs on or may
// run on again: droplets, and builds that are staging; with those of their buildpacks.
func (tx *Tx) NamedImages() ([]string, error) {
	return tx.texts(`
		SELECT DISTINCT reference FROM (
			SELECT json_extract(lifecycle, '$.Image.Reference') AS reference FROM droplets
			UNION ALL SELECT json_extract(lifecycle, '$.Image.Reference') FROM builds WHERE state = 'STAGING'
			UNION ALL SELECT json_extract(p.value, '$.Reference') FROM droplets, json_each(lifecycle, '$.Packages') p
			UNION ALL SELECT json_extract(p.value, '$.Reference') FROM builds, json_each(lifecycle, '$.Packages') p WHERE state = 'STAGING')
		WHERE reference IS NOT NULL ORDER BY reference`)
}
