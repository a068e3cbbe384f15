package datadir

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/registry"
	"cupola/rootfs/volume"
	"cupola/runtime/authority"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/egress"
	"cupola/runtime/files"
	"cupola/runtime/lifecycle"
	"cupola/runtime/network"
	"cupola/runtime/users"
	"cupola/server/admin/archive"
	"cupola/store"
	"cupola/store/blob"
)

// Names in a data directory.
const (
	// DatabaseCopies holds the copies that the daemon makes of its database.
	DatabaseCopies = "db/backups"
	// Volumes holds the volumes of data services and deployments.
	Volumes = "volumes"
	// ServiceContents holds the content of data services that are being restored.
	ServiceContents = "service-contents"
)

// holdCommand is the command of this program that runs volume.Hold with its
// arguments.
const holdCommand = "hold-volume"

// IDMap are the user IDs of the host that own what containers share on disk, and
// those of containers that cannot have their own: high enough to meet none of the
// host's, and below those that hosts give to rootless users of their own accord.
func IDMap() users.Range { return users.Range{Base: 0x6c000000, Size: users.Size} }

// Store opens the database after a quick check of it.
func (d *Dir) Store(ctx context.Context) (*store.Store, error) {
	s, err := store.Open(store.Config{Dir: d.Path("db"), Log: d.log})
	if err == nil {
		if err = s.Check(ctx, store.Quick); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, d.HintRestore(err)
	}
	return s, nil
}

// HintRestore adds to an error that says the database is damaged how to restore
// the last copy.
func (d *Dir) HintRestore(err error) error {
	if !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	all, _ := archive.DatabaseCopies(d.Path(DatabaseCopies))
	if len(all) == 0 {
		return fmt.Errorf("%w: there is no automatic backup yet; restore one that 'cupola backup' made into an empty --data-dir", err)
	}
	return fmt.Errorf("%w: the last automatic backup is of %s; stop the daemon, then put it back with 'sudo cupola restore --data-dir %s --database %s'",
		err, all[0].Made.Format(time.RFC3339), d.path, all[0].File)
}

// Blobs opens packages, droplets and buildpacks.
func (d *Dir) Blobs() (*blob.Store, error) { return blob.Open(d.Path("blobs")) }

// Authority is the CA of this machine, which is made at the first start. Its key
// lies in the database's directory, which only root may enter.
func (d *Dir) Authority() (*authority.Authority, error) {
	return authority.Open(AuthorityConfig(d.path))
}

// AuthorityFile is the certificate of the CA.
const AuthorityFile = "ca.pem"

// AuthorityConfig says where a data directory has its CA.
func AuthorityConfig(dataDir string) authority.Config {
	return authority.Config{CertFile: filepath.Join(dataDir, AuthorityFile), KeyFile: filepath.Join(dataDir, "db", "ca.key"), Name: "cupola CA"}
}

// Egress is where a command may connect when a user named the address; the
// daemon knows its own listeners besides.
func (d *Dir) Egress() egress.Guard { return egress.Guard{Containers: d.Owner().Subnet} }

// Roots opens stacks and images. guard holds for registries that users name.
func (d *Dir) Roots(registries registry.Config, guard egress.Guard) (*rootfs.Store, error) {
	return d.roots(registries, guard, false)
}

// Unmounted is Roots of a daemon that has no containers: it needs no rights to mount.
func (d *Dir) Unmounted(registries registry.Config, guard egress.Guard) (*rootfs.Store, error) {
	return d.roots(registries, guard, true)
}

func (d *Dir) roots(registries registry.Config, guard egress.Guard, unmounted bool) (*rootfs.Store, error) {
	if err := lifecycle.Install(d.Path("lifecycle")); err != nil {
		return nil, err
	}
	registries.Guard = &guard
	return rootfs.New(rootfs.Config{Dir: d.Path("rootfs"), IDs: IDMap(), Tools: contract.Tools(), Registries: registries, Log: d.log, Unmounted: unmounted})
}

// Volumes opens the volumes, whose disks are made as those of roots.
func (d *Dir) Volumes(roots *rootfs.Store) (*volume.Store, error) {
	ids := IDMap()
	return volume.New(volume.Config{Dir: d.Path(Volumes), Disks: roots.Disks, Users: ids, Owner: ids.Base + contract.VcapID,
		Holder: []string{"/proc/self/exe", holdCommand}, Log: d.log})
}

// ServiceContents is the directory of that name.
func (d *Dir) ServiceContents() string { return d.Path(ServiceContents) }

// Containers opens the engine, which starts containers as kind does. Groups are the cgroups that hold cells to their memory.
func (d *Dir) Containers(kind container.Kind, groups []container.Group) (*container.Engine, error) {
	return container.New(container.Config{Kind: kind, Dir: d.Path("containers"), CgroupParent: d.Owner().Cgroup, IDMap: container.IDMap(IDMap()),
		Groups: groups, HelperDir: d.Path("lifecycle"), Log: d.log})
}

// Files opens the small files of containers.
func (d *Dir) Files() (*files.Store, error) { return files.New(files.Config{Dir: d.Path("memory")}) }

// Network opens the containers' network. routers are where this machine's router
// listens, to which containers may connect.
func (d *Dir) Network(routers ...netip.AddrPort) (*network.Network, error) {
	n := d.Owner()
	return network.New(network.Config{Dir: d.Path("netns"), Table: n.Table, LinkPrefix: n.LinkPrefix, Subnet: n.Subnet, Router: routers, Names: true, Log: d.log})
}

// SharedUsers are the same for all containers, and claim nothing of the machine.
func (d *Dir) SharedUsers() cell.Users { return users.Shared(IDMap()) }

// Users gives each container its own users, or all the same where the data
// directory's files cannot be shown to others.
func (d *Dir) Users(ctx context.Context, roots *rootfs.Store) (cell.Users, error) {
	if err := roots.Shifts(); err != nil {
		d.log.WarnContext(ctx, "all containers have the same users of this machine, so that one can exhaust the others' limits: see 'cupola doctor'", "err", err)
		return users.Shared(IDMap()), nil
	}
	return users.Open(users.DefaultDir)
}
