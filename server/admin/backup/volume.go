package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cupola/rootfs/volume"
	"cupola/server/admin/archive"
	"cupola/server/bosh/director"
	"cupola/server/databroker"
	"cupola/store"
)

// defaultHold is for how long a volume's writers may have to wait.
const defaultHold = time.Minute

// namedVolume is a volume that rows name.
type namedVolume struct {
	volume.Spec
	of   string // who has it
	must bool   // it was made before the row said so
}

// volumesOf are the volumes that the rows of a copy of the database name.
func volumesOf(ctx context.Context, db string) (map[string]namedVolume, error) {
	s, err := store.Open(store.Config{Dir: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	all := map[string]namedVolume{}
	err = s.Read(ctx, func(tx *store.Tx) error {
		disks, err := director.VolumesOf(tx)
		if err != nil {
			return err
		}
		for name, spec := range disks {
			all[name] = namedVolume{spec, "a disk of a deployment", false}
		}
		instances, err := store.DataInstances.All(tx)
		for _, i := range instances {
			if spec, ok := databroker.Volume(i); ok {
				all[i.GUID] = namedVolume{spec, "of a service instance of " + i.Service, true}
			}
		}
		return err
	})
	return all, errors.Join(err, s.Close())
}

// gatherVolumes copies the volumes that the database in dir names, one after
// the other. Who writes to one waits for its copy alone. A volume that was
// removed since the database was copied is only named.
func (b *Maker) gatherVolumes(ctx context.Context, dir string, o Options, m *archive.Manifest) error {
	all, err := volumesOf(ctx, filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	there, err := b.Volumes.List()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		kept := slices.Contains(there, name)
		if kept && !o.WithoutVolumes {
			err := b.gatherVolume(ctx, dir, name, cmp.Or(o.Hold, defaultHold))
			if err == nil {
				m.Volumes = append(m.Volumes, archive.Volume{Name: name, Bytes: v.Bytes, Shared: v.Shared})
				continue
			}
			if !errors.Is(err, volume.ErrNone) {
				return fmt.Errorf("%w (%s); --without-volumes leaves all volumes out", err, v.of)
			}
		}
		if kept || v.must {
			m.Left = append(m.Left, archive.Left{Kind: "volume", Name: name, Origin: v.of})
		}
	}
	return nil
}

func (b *Maker) gatherVolume(ctx context.Context, dir, name string, within time.Duration) error {
	to := filepath.Join(dir, filepath.FromSlash(archive.TreeName(name)))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = b.Volumes.Save(ctx, name, within, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
