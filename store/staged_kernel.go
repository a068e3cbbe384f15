package store

// StagedKernel is the kernel that the machine had when the current droplet of an app was staged on an image.
type StagedKernel struct {
	App, AppGUID string // App is org/space/app
	Image        string // the reference, with the digest
	Kernel       string // the release
}

// StagedKernels lists the apps whose current droplet runs on an image, by name. Droplets of an older cupola do not tell a kernel.
func (tx *Tx) StagedKernels() (all []StagedKernel, err error) {
	rows, err := tx.sql.QueryContext(tx.ctx, `
		SELECT o.name || '/' || s.name || '/' || a.name AS app, a.guid, json_extract(d.lifecycle, '$.Image.Reference'), json_extract(d.lifecycle, '$.Image.Kernel') AS kernel
		FROM apps a JOIN droplets d ON d.guid = a.droplet_guid JOIN spaces s ON s.guid = a.space_guid JOIN orgs o ON o.guid = s.org_guid
		WHERE kernel IS NOT NULL ORDER BY app`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k StagedKernel
		if err := rows.Scan(&k.App, &k.AppGUID, &k.Image, &k.Kernel); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, rows.Err()
}
