package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/disk"
	"cupola/server/admin/archive"
	"cupola/server/admin/steps"
	"cupola/server/databroker"
	"cupola/store"
	"cupola/store/cf"
)

// Source is where a backup is read from.
type Source struct {
	File  string        // that 'cupola backup' wrote; "": Tar
	Tar   io.ReadSeeker // that Maker.Write wrote
	Parts []string      // files of what changed since, the oldest first
	Made  time.Time     // as of when it is with them; the zero time: as the file says
}

// extract writes the members that are wanted below dir. They have size bytes, if that is known.
func (s Source) extract(ctx context.Context, dir string, size int64, report steps.Func, wants func(archive.Member) bool) (m archive.Manifest, err error) {
	progress := func(done, total int64) { report(steps.Step{Step: "restore", Done: done, Total: total}) }
	if s.File == "" {
		if _, err := s.Tar.Seek(0, io.SeekStart); err != nil {
			return m, err
		}
		return archive.ExtractSomeOfTar(ctx, counted{s.Tar, &steps.Writer{To: io.Discard, Total: size, Report: progress}}, dir, wants)
	}
	err = readFile(s.File, progress, func(r io.Reader) error {
		m, err = archive.ExtractSome(ctx, r, dir, wants)
		return err
	})
	return m, err
}

// counted counts what is read.
type counted struct {
	io.ReadSeeker
	count *steps.Writer
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	_, _ = c.count.Write(p[:n]) // it discards
	return n, err
}

// SpaceName names a space. Org may be "" if the name is unique without.
type SpaceName struct{ Name, Org string }

// Space is a space as a backup has it.
type Space struct {
	GUID, Name, Org string
	OrgGUID         string
	Made            time.Time                // as of when it is
	Services        map[string]SpaceInstance // those of the built-in broker, by the service instance's GUID
}

// SpaceInstance is a service instance of a space.
type SpaceInstance struct {
	Instance
	Content string // the file of its content, as volume.Save writes it; "": the backup does not have it
}

// ExtractSpace writes what a backup has of a space below dir, which is there and empty, laid out as in a data directory: the database, in
// which all spaces are, and the blobs of the space's apps, or of some of them. A data service's content is as of the backup, whatever changed since.
// Before it takes more than the database, it asks found.
func ExtractSpace(ctx context.Context, dir string, from Source, name SpaceName, apps []string, found func(*Space) error, report steps.Func) (*Space, error) {
	x := &spaceExtraction{dir: dir, from: from, report: report, wanted: map[string]bool{}}
	m, err := x.database(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.find(ctx, name, apps); err != nil {
		return nil, err
	}
	if err := found(x.space); err != nil {
		return nil, err
	}
	return x.space, x.files(ctx, m)
}

type spaceExtraction struct {
	dir    string
	from   Source
	report steps.Func

	space  *Space
	wanted map[string]bool // names of members
}

// database extracts the database, brings it up to date and checks it.
func (x *spaceExtraction) database(ctx context.Context) (archive.Manifest, error) {
	m, err := x.from.extract(ctx, x.dir, 0, x.report, archive.IsDatabase)
	if err == nil && m.Pages != nil {
		err = errors.New("it is a part of what changed since a backup, and no backup")
	}
	if err != nil {
		return m, err
	}
	if x.from.Made.IsZero() {
		x.from.Made = m.Created
	}
	for _, part := range x.from.Parts {
		err := readFile(part, func(int64, int64) {}, func(r io.Reader) error {
			_, err := archive.Apply(ctx, r, x.dir)
			return err
		})
		if err != nil {
			return m, fmt.Errorf("what changed since the backup: %w", err)
		}
	}
	_, err = store.Inspect(ctx, filepath.Join(x.dir, "db"))
	return m, err
}

// find finds the space in the database, and what else the backup has of it.
func (x *spaceExtraction) find(ctx context.Context, name SpaceName, apps []string) error {
	s, err := store.Open(store.Config{Dir: filepath.Join(x.dir, "db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("open the backup's database: %w", err)
	}
	err = s.Read(ctx, func(tx *store.Tx) error {
		all, err := spacesOf(tx)
		if err != nil {
			return err
		}
		if x.space, err = name.of(all); err != nil {
			return err
		}
		x.space.Made = x.from.Made
		return errors.Join(x.findApps(tx, apps), x.findServices(tx))
	})
	return errors.Join(err, s.Close())
}

func spacesOf(tx *store.Tx) (all []*Space, err error) {
	spaces, err := store.Spaces.All(tx)
	if err != nil {
		return nil, err
	}
	for _, s := range spaces {
		org, err := store.Orgs.Get(tx, s.OrgGUID)
		if err != nil {
			return nil, err
		}
		all = append(all, &Space{GUID: s.GUID, Name: s.Name, Org: org.Name, OrgGUID: org.GUID, Services: map[string]SpaceInstance{}})
	}
	return all, nil
}

// of is the one space of all that has the name.
func (n SpaceName) of(all []*Space) (*Space, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(s *Space) bool { return s.Name != n.Name || n.Org != "" && s.Org != n.Org })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("the backup has %d spaces named %s: give --org", len(found), n.Name)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name+" of the org "+s.Org)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("the backup has no such space; it has: %s", strings.Join(names, "; "))
}

// findApps wants the blobs of the current droplets of apps and of their packages; of an app without a droplet, the newest package's.
func (x *spaceExtraction) findApps(tx *store.Tx, names []string) error {
	where := map[string][]string{"space_guids": {x.space.GUID}}
	if len(names) > 0 {
		where["names"] = names
	}
	apps, err := store.Apps.Where(tx, where)
	if err != nil {
		return err
	}
	for _, app := range apps {
		packages, err := store.Packages.Where(tx, map[string][]string{"app_guids": {app.GUID}, "states": {string(cf.PackageReady)}})
		if err != nil {
			return err
		}
		d, err := store.Droplets.Find(tx, app.DropletGUID)
		if err != nil {
			return err
		}
		for n, p := range packages {
			if newest := n == len(packages)-1; d == nil && newest || d != nil && p.GUID == d.PackageGUID {
				x.want(p.Digest)
			}
		}
		if d != nil {
			x.want(d.Digest)
		}
	}
	return nil
}

// want wants a blob, if there is one and no part brought it.
func (x *spaceExtraction) want(digest string) {
	if digest == "" {
		return
	}
	member := archive.BlobName(digest)
	if _, err := os.Stat(filepath.Join(x.dir, filepath.FromSlash(member))); errors.Is(err, fs.ErrNotExist) {
		x.wanted[member] = true
	}
}

// findServices finds the service instances of the built-in broker, and wants their contents.
func (x *spaceExtraction) findServices(tx *store.Tx) error {
	data, err := store.DataInstances.All(tx)
	if err != nil {
		return err
	}
	for _, d := range data {
		one, err := namedOf(tx, d)
		if err != nil {
			return err
		}
		if _, ok := databroker.Volume(d); ok && one.SpaceGUID == x.space.GUID {
			x.space.Services[d.GUID] = SpaceInstance{Instance: one.Instance}
			x.wanted[archive.TreeName(d.GUID)] = true
		}
	}
	return nil
}

// files extracts what is wanted, of what a backup with a manifest has of it.
func (x *spaceExtraction) files(ctx context.Context, m archive.Manifest) error {
	var size int64
	for _, member := range m.Members {
		if x.wanted[member.Name] {
			size += member.Size
		}
	}
	// Each is here, on its way to the daemon, and with the daemon.
	if err := disk.CheckRoom(x.dir, "the files of the space, three times for a while", 3*size); err != nil {
		return err
	}
	if _, err := x.from.extract(ctx, x.dir, size, x.report, func(m archive.Member) bool { return x.wanted[m.Name] }); err != nil {
		return err
	}
	for guid, i := range x.space.Services {
		content := filepath.Join(x.dir, filepath.FromSlash(archive.TreeName(guid)))
		if _, err := os.Stat(content); err == nil {
			i.Content = content
			x.space.Services[guid] = i
		}
	}
	return nil
}
