package store

// NamedBlobs adds the digest of every blob that a row names.
func (tx *Tx) NamedBlobs(named map[string]bool) error {
	digests, err := tx.texts(`
		SELECT digest FROM packages UNION SELECT digest FROM droplets UNION SELECT digest FROM buildpacks
		UNION SELECT digest FROM resources WHERE entry = '' UNION SELECT digest FROM build_caches
		UNION SELECT digest FROM data_backups
		UNION SELECT digest FROM bosh_compiled_packages UNION SELECT coalesce(b.value, '') FROM bosh_specs s, json_each(s.blobs) b
		UNION SELECT coalesce(json_extract(j.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.jobs) j
		UNION SELECT coalesce(json_extract(p.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.packages) p
		UNION SELECT coalesce(json_extract(c.value, '$.Digest'), '') FROM bosh_releases r, json_each(r.packages) p, json_each(p.value, '$.Compiled') c
		UNION SELECT coalesce(json_extract(o.value, '$.Digest'), '') FROM lrp_tasks t, json_each(t.outputs) o`)
	for _, digest := range digests {
		named[digest] = true
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
