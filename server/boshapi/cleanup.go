package boshapi

import (
	"slices"

	"cupola/server/bosh/director"
	"cupola/server/bosh/releases"
	"cupola/store"
	"cupola/store/cf"
)

// keptVersions is how many unused versions of a release a clean-up leaves, unless it
// removes all.
const keptVersions = 2

// unused are what a clean-up deletes.
type unused struct {
	releases []*cf.BOSHRelease
	disks    []*cf.BOSHDisk
}

func (c *call) unused(all, keepDisks bool) (u unused, err error) {
	rows, err := store.BOSHReleases.All(c.tx)
	if err != nil {
		return u, err
	}
	byName := map[string][]*cf.BOSHRelease{}
	for _, r := range rows {
		users, err := store.BOSHSpecs.UsersOf(c.tx, r.Name, r.Version)
		if err != nil {
			return u, err
		}
		if len(users) == 0 {
			byName[r.Name] = append(byName[r.Name], r)
		}
	}
	for _, of := range byName {
		slices.SortFunc(of, func(a, b *cf.BOSHRelease) int { return releases.CompareVersions(a.Version, b.Version) })
		if !all {
			of = of[:max(0, len(of)-keptVersions)]
		}
		u.releases = append(u.releases, of...)
	}
	slices.SortFunc(u.releases, func(a, b *cf.BOSHRelease) int {
		return releases.CompareVersions(a.Name+" "+a.Version, b.Name+" "+b.Version)
	})
	if !all || keepDisks {
		return u, nil
	}
	disks, err := store.BOSHDisks.All(c.tx)
	for _, d := range disks {
		if !d.OrphanedAt.IsZero() {
			u.disks = append(u.disks, d)
		}
	}
	return u, err
}

// cleanUp deletes releases that no deployment uses, and with remove_all orphaned disks.
func cleanUp(c *call) (*answer, error) {
	var req struct {
		Config struct {
			RemoveAll bool `json:"remove_all"`
			KeepDisks bool `json:"keep_orphaned_disks"`
		}
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	u, err := c.unused(req.Config.RemoveAll, req.Config.KeepDisks)
	if err != nil {
		return nil, err
	}
	for _, d := range u.disks {
		if err := director.DeleteDisk(c.tx, c.user(), d); err != nil {
			return nil, err
		}
	}
	return c.deleteReleases(director.CleanUp, u.releases, "cleanup complete")
}

// listUnused lists what cleanUp would delete.
func listUnused(c *call) (*answer, error) {
	u, err := c.unused(c.flag("remove_all"), c.flag("keep_orphaned_disks"))
	if err != nil {
		return nil, err
	}
	gone, disks := []doc{}, []doc{}
	for _, r := range u.releases {
		gone = append(gone, doc{"name": r.Name, "versions": []string{r.Version}})
	}
	for _, d := range u.disks {
		disks = append(disks, viewDisk(d))
	}
	return ok(doc{"releases": gone, "stemcells": []doc{}, "compiled_packages": []doc{}, "orphaned_disks": disks, "orphaned_vms": []doc{}, "exported_releases": []string{}, "dns_blobs": []string{}})
}
