package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/disk"
	"cupola/server/admin/archive"
	"cupola/server/admin/steps"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/store"
	"cupola/store/cf"
)

// InstanceName names a service instance. Org and Space may be "" if the name is unique without.
type InstanceName struct{ Name, Org, Space string }

// Instance is a service instance of the built-in broker as a backup has it.
type Instance struct {
	Service, Plan string
	Org, Space    string // their names
	SpaceGUID     string
	TLS           string    // the value of databroker.TLSParameter; "" where its service has none
	Made          time.Time // when the backup was

	volume string
}

// InstanceOfFile writes the content of a service instance to w, as volume.Save does, from the file of a
// backup, which is read and checked to its end. A copy of the backup's database is in temp for a while, as a directory that a daemon
// whose data directory temp is deletes if this process cannot.
func InstanceOfFile(ctx context.Context, temp, file string, name InstanceName, w io.Writer, report steps.Func) (Instance, error) {
	p := &archive.Picker{To: w}
	return pick(p, temp, name, func(int64) {}, func() error {
		return readFile(file, func(done, total int64) { report(steps.Step{Step: "restore", Done: done, Total: total}) }, func(r io.Reader) error { return p.File(ctx, r) })
	})
}

// InstanceOfTar is InstanceOfFile of the tar that Maker.Write wrote, of which it reads only what it needs.
func InstanceOfTar(ctx context.Context, temp string, tar io.ReadSeeker, name InstanceName, w io.Writer, report steps.Func) (Instance, error) {
	count := &steps.Writer{To: w, Report: func(done, total int64) { report(steps.Step{Step: "restore", Done: done, Total: total}) }}
	p := &archive.Picker{To: count}
	return pick(p, temp, name, func(size int64) { count.Total = size }, func() error { return p.Tar(ctx, tar) })
}

// pick takes an instance out of a backup, by way of a copy of the backup's database. found receives the size of the content before
// any of that is written.
func pick(p *archive.Picker, temp string, name InstanceName, found func(size int64), read func() error) (i Instance, err error) {
	if p.Dir, err = os.MkdirTemp(temp, datadir.ScratchPrefix); err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.Dir)) }()
	p.Choose = func(m archive.Manifest) (volume string, err error) {
		if i, err = findInstance(p.Dir, name); err != nil {
			return "", err
		}
		i.Made = m.Created
		size := sizeOf(m, i.volume)
		found(size)
		return i.volume, disk.CheckRoom(temp, "the content of "+name.Name+" as a file and as a volume", 2*size)
	}
	err = read()
	return i, err
}

// sizeOf is how many bytes a backup has of a volume; 0 if it does not have the volume.
func sizeOf(m archive.Manifest, volume string) int64 {
	for _, member := range m.Members {
		if member.Name == archive.TreeName(volume) {
			return member.Size
		}
	}
	return 0
}

// findInstance finds an instance in the database in dir.
func findInstance(dir string, name InstanceName) (i Instance, err error) {
	s, err := store.Open(store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return i, fmt.Errorf("open the backup's database: %w", err)
	}
	err = s.Read(context.Background(), func(tx *store.Tx) error {
		all, err := instancesOf(tx)
		if err == nil {
			i, err = name.of(all)
		}
		return err
	})
	return i, errors.Join(err, s.Close())
}

// named is an instance with its name.
type named struct {
	Instance
	name string
}

func (n named) String() string { return n.name + " in the space " + n.Space + " of the org " + n.Org }

// instancesOf are the instances that have content.
func instancesOf(tx *store.Tx) (all []named, err error) {
	data, err := store.DataInstances.All(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range data {
		one, err := namedOf(tx, d)
		if err != nil {
			return nil, err
		}
		if _, ok := databroker.Volume(d); ok && one.name != "" {
			all = append(all, one)
		}
	}
	return all, nil
}

// namedOf finds how users call what the broker has; one without a name is being deleted.
func namedOf(tx *store.Tx, d *cf.DataInstance) (n named, err error) {
	i, err := store.ServiceInstances.Get(tx, d.GUID)
	if store.IsNotFound(err) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	space, err := store.Spaces.Get(tx, i.SpaceGUID)
	if err != nil {
		return n, err
	}
	org, err := store.Orgs.Get(tx, space.OrgGUID)
	if err != nil {
		return n, err
	}
	return named{Instance{Service: d.Service, Plan: d.Plan, Org: org.Name, Space: space.Name, SpaceGUID: space.GUID, TLS: databroker.TLSOf(d), volume: d.GUID}, i.Name}, nil
}

// of is the one instance of all that has the name.
func (n InstanceName) of(all []named) (Instance, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(one named) bool {
		return one.name != n.Name || n.Org != "" && one.Org != n.Org || n.Space != "" && one.Space != n.Space
	})
	switch {
	case len(found) == 1:
		return found[0].Instance, nil
	case len(found) > 1:
		return Instance{}, fmt.Errorf("the backup has %d service instances named %s: give --org and --space", len(found), n.Name)
	case len(all) == 0:
		return Instance{}, errors.New("the backup has no service instances of the built-in broker")
	}
	var names []string
	for _, one := range all {
		names = append(names, one.String())
	}
	slices.Sort(names)
	return Instance{}, fmt.Errorf("the backup has no service instance %s of the built-in broker; it has: %s", n.Name, strings.Join(names, "; "))
}
