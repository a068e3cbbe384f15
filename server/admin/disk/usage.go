package disk

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"cupola/rootfs/tree"
	"cupola/server/admin/lowwater"
	"cupola/server/admin/stack"
	"cupola/server/datadir"
	"cupola/store"
	"cupola/store/blob"
)

// Keeper knows what takes room in a data directory.
type Keeper struct {
	Dir    *datadir.Dir
	Blobs  *blob.Store
	Stacks *stack.Library
	Mark   func() lowwater.Mark // it may change; nil: the default

	turn sync.Mutex // held while caches are deleted
}

// Usage is what takes room.
type Usage struct {
	Path     string `json:"path"`
	Total    uint64 `json:"total_bytes"` // of the file system
	Free     uint64 `json:"free_bytes"`
	LowWater uint64 `json:"low_water_bytes"` // with less free, the daemon deletes caches; 0: never
	Areas    []Area `json:"areas"`
}

// Area is one kind of what takes room.
type Area struct {
	Name        string `json:"name"`
	Bytes       int64  `json:"bytes"`
	Reclaimable int64  `json:"reclaimable_bytes"` // what 'cupola disk reclaim' deletes now
	Note        string `json:"note,omitempty"`
}

// lowWater is the free space of a disk of this size below which caches are deleted.
func (k *Keeper) lowWater(total uint64) uint64 {
	var mark lowwater.Mark // the default
	if k.Mark != nil {
		mark = k.Mark()
	}
	return mark.Of(total)
}

// Usage measures all of the data directory.
func (k *Keeper) Usage(ctx context.Context) (u Usage, err error) {
	u.Path = k.Dir.Path()
	if u.Total, u.Free, err = space(u.Path); err != nil {
		return u, err
	}
	u.LowWater = k.lowWater(u.Total)
	kinds, err := k.kinds(ctx)
	if err != nil {
		return u, err
	}
	kept, err := k.keptBytes(ctx, kinds)
	if err != nil {
		return u, err
	}
	if u.Areas, err = k.blobAreas(ctx, kinds, kept); err != nil {
		return u, err
	}
	for _, d := range directories {
		var paths []string
		for _, dir := range d.dirs {
			paths = append(paths, k.Dir.Path(dir))
		}
		n, err := tree.DiskBytes(ctx, paths...)
		if err != nil {
			return u, err
		}
		if d.name == unpacked {
			for _, bytes := range kept {
				n -= bytes
			}
		}
		u.Areas = append(u.Areas, Area{Name: d.name, Bytes: max(n, 0), Note: d.note})
	}
	rest, err := k.rest(ctx)
	if err != nil {
		return u, err
	}
	u.Areas = append(u.Areas, rest)
	return u, k.markReclaimable(ctx, u.Areas)
}

func space(path string) (total, free uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	size := uint64(st.Bsize) //nolint:gosec // it is not negative
	return st.Blocks * size, st.Bavail * size, nil
}

// directories are the areas that are directories.
var directories = []struct {
	name, note string
	dirs       []string
}{
	{images, "", []string{"rootfs/images", "rootfs/oci", "rootfs/chains"}},
	{unpacked, "", []string{"rootfs/layers"}},
	{packed, "deleted after a day", []string{"rootfs/packed"}},
	{"stacks", "'cupola stack rm' removes one", []string{"rootfs/stacks"}},
	{"instances' disks", "deleted with the instances", []string{"rootfs/run", "rootfs/templates"}},
	{"service data", "deleted with service instances and deployments", []string{datadir.Volumes, datadir.ServiceContents}},
	{"logs", "limited by the daemon", []string{"logs", "logs.gob", "packaging"}},
	{"log archive", "older log lines, limited by --log-archive", []string{"log-archive"}},
	{"metrics", "of apps, for 30 days, limited by the daemon", []string{"metrics"}},
	{"archives by URL", "of Diego's clients, at most 10 GB", []string{"artifacts"}},
	{"git repositories", "deleted with their apps", []string{"git"}},
	{"database", "", []string{"db/" + store.DatabaseFile, "db/" + store.DatabaseFile + "-wal"}},
	{"backups", "of the database, limited by the daemon", []string{datadir.DatabaseCopies}},
}

// elsewhere are the directories of which parts are other areas.
var elsewhere = []string{"rootfs", "db"}

// rest measures what no other area has.
func (k *Keeper) rest(ctx context.Context) (a Area, err error) {
	a = Area{Name: "other", Note: "programs in containers, keys, what is being deleted"}
	known := []string{"blobs"}
	for _, d := range directories {
		known = append(known, d.dirs...)
	}
	var paths []string
	for _, dir := range append([]string{""}, elsewhere...) {
		entries, err := os.ReadDir(k.Dir.Path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
		for _, e := range entries {
			name := e.Name()
			if dir != "" {
				name = dir + "/" + name
			}
			if !slices.Contains(known, name) && !slices.Contains(elsewhere, name) {
				paths = append(paths, k.Dir.Path(name))
			}
		}
	}
	a.Bytes, err = tree.DiskBytes(ctx, paths...)
	return a, err
}

// keptBytes measures the blobs that are stored unpacked, by digest. A file that several of them have counts for the first, in the
// order of kinds: for a package rather than its droplet.
func (k *Keeper) keptBytes(ctx context.Context, kinds []store.BlobKind) (map[string]int64, error) {
	kept, err := k.Stacks.Roots.Layers.AllKept()
	if err != nil {
		return nil, err
	}
	var order []string
	for _, kind := range kinds {
		order = append(order, kind.Digests...)
	}
	meter, bytes := tree.Meter{}, map[string]int64{}
	for _, digest := range slices.AppendSeq(order, maps.Keys(kept)) {
		if _, measured := bytes[digest]; measured || kept[digest] == "" {
			continue
		}
		if bytes[digest], err = meter.DiskBytes(ctx, kept[digest]); err != nil {
			return nil, err
		}
	}
	return bytes, nil
}

// blobAreas measures the blobs by what names them first. kept are those that have no file.
func (k *Keeper) blobAreas(ctx context.Context, kinds []store.BlobKind, kept map[string]int64) (all []Area, err error) {
	named := map[string]bool{}
	unnamed, err := tree.DiskBytes(ctx, k.Dir.Path("blobs"))
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		a := Area{Name: kind.Name}
		for _, digest := range kind.Digests {
			if named[digest] {
				continue
			}
			named[digest] = true
			a.Bytes += kept[digest]
			if info, err := k.Blobs.Stat(digest); err == nil {
				unnamed -= tree.Allocated(info)
				a.Bytes += tree.Allocated(info)
			}
		}
		all = append(all, a)
	}
	for digest, bytes := range kept {
		if !named[digest] {
			unnamed += bytes
		}
	}
	return append(all, Area{Name: "unnamed blobs", Bytes: max(unnamed, 0), Note: "the daemon deletes them ten minutes after their last use"}), nil
}

// markReclaimable says of which areas something can be deleted.
func (k *Keeper) markReclaimable(ctx context.Context, areas []Area) error {
	for _, c := range k.caches() {
		unused, err := c.unused(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(areas, func(a Area) bool { return a.Name == c.name })
		for _, u := range unused {
			areas[at].Reclaimable += u.Bytes
		}
		if areas[at].Reclaimable > 0 {
			areas[at].Note = c.cost
		}
	}
	return nil
}
