package store

// onStack are the apps that use a stack: by their lifecycle, their current droplet, or builds and tasks under way.
const onStack = `
	SELECT app_guid FROM builds WHERE state = 'STAGING' AND json_extract(lifecycle, '$.Stack') = ?1
	UNION SELECT t.app_guid FROM tasks t JOIN droplets d ON d.guid = t.droplet_guid
		WHERE t.state IN ('PENDING','RUNNING','CANCELING') AND d.stack = ?1
	UNION SELECT a.guid FROM apps a JOIN droplets d ON d.guid = a.droplet_guid WHERE d.stack = ?1
	UNION SELECT guid FROM apps WHERE json_extract(lifecycle, '$.Stack') = ?1`

// onImage are the apps that NamedImages counts for an image.
const onImage = `
	SELECT app_guid FROM droplets WHERE json_extract(lifecycle, '$.Image.Reference') LIKE '%@' || ?1
	UNION SELECT app_guid FROM builds WHERE state = 'STAGING' AND json_extract(lifecycle, '$.Image.Reference') LIKE '%@' || ?1
	UNION SELECT app_guid FROM droplets, json_each(lifecycle, '$.Packages') p WHERE json_extract(p.value, '$.Reference') LIKE '%@' || ?1
	UNION SELECT app_guid FROM builds, json_each(lifecycle, '$.Packages') p WHERE state = 'STAGING' AND json_extract(p.value, '$.Reference') LIKE '%@' || ?1`

// StackUsers lists who needs the stack of a name: apps as org/space/app, sorted.
func (tx *Tx) StackUsers(name string) ([]string, error) { return tx.appNames(onStack, name) }

// ImageUsers lists the apps of which a droplet, or a build under way, names the image with the digest, as StackUsers does.
func (tx *Tx) ImageUsers(digest string) ([]string, error) { return tx.appNames(onImage, digest) }

// appNames names the apps whose GUIDs a query finds.
func (tx *Tx) appNames(guids, of string) ([]string, error) {
	return tx.texts(`
		SELECT o.name || '/' || s.name || '/' || a.name AS user FROM apps a JOIN spaces s ON s.guid = a.space_guid JOIN orgs o ON o.guid = s.org_guid
		WHERE a.guid IN (`+guids+`) ORDER BY user`, of)
}
