package store

// NamedBlobs adds the digest of every blob that a row names.
func (tx *Tx) NamedBlobs(named map[string]bool) error {
	rows, err := tx.sql.QueryContext(tx.ctx, `
		SELECT digest FROM packages UNION SELECT digest FROM droplets UNION SELECT digest FROM buildpacks
		UNION SELECT digest FROM resources UNION SELECT digest FROM build_caches
		UNION SELECT coalesce(json_extract(o.value, '$.Digest'), '') FROM lrp_tasks t, json_each(t.outputs) o`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var digest string
		if err := rows.Scan(&digest); err != nil {
			return err
		}
		named[digest] = true
	}
	return rows.Err()
}

// NamedImages are the references of the images that something runs on or may
// run on again: droplets, and builds that are staging.
func (tx *Tx) NamedImages() ([]string, error) {
	rows, err := tx.sql.QueryContext(tx.ctx, `
		SELECT DISTINCT reference FROM (
			SELECT json_extract(lifecycle, '$.Image.Reference') AS reference FROM droplets
			UNION ALL SELECT json_extract(lifecycle, '$.Image.Reference') FROM builds WHERE state = 'STAGING')
		WHERE reference IS NOT NULL ORDER BY reference`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var images []string
	for rows.Next() {
		var image string
		if err := rows.Scan(&image); err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return images, rows.Err()
}
