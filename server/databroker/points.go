package databroker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cupola/rootfs/disk"
	"cupola/runtime/contract"
	"cupola/store"
	"cupola/store/cf"
)

// Points are the points in time that an instance can be restored to.
type Points struct {
	Enabled bool       `json:"enabled"`
	First   *time.Time `json:"first"` // nil if there is none yet
	Last    *time.Time `json:"last"`

	bases []basePoint // in the order in which they were made
}

// basePoint is a base backup, and the time from which on it can be restored, by the clock as it was then.
type basePoint struct {
	name string
	at   time.Time
}

// errNoPoint says that an instance cannot be restored to a time.
var errNoPoint = errors.New("there is no such point in time")

// base is the newest base backup that has been made by a time.
func (p Points) base(before time.Time) (name string, err error) {
	switch {
	case !p.Enabled:
		return "", fmt.Errorf(`%w: point-in-time recovery is not enabled; for later ones enable it with the parameters {"point_in_time_recovery": true} ('cf update-service NAME -c')`, errNoPoint)
	case p.First == nil:
		return "", fmt.Errorf("%w: the first base backup is not made yet, or there was no room for it; the service instance's log says so", errNoPoint)
	case before.Before(*p.First):
		return "", fmt.Errorf("%w: the first one is %s", errNoPoint, stamp(*p.First))
	}
	for _, b := range slices.Backward(p.bases) {
		if !b.at.After(before) {
			return b.name, nil
		}
	}
	return "", errNoPoint
}

// Points lists the points in time that an instance can be restored to. Its server need not run.
func (s *Service) Points(ctx context.Context, instanceGUID string) (p Points, err error) {
	if s == nil {
		return p, cf.Unprocessable("%s", errOff)
	}
	var i *cf.DataInstance
	err = s.broker.Store.Read(ctx, func(tx *store.Tx) error {
		i, err = store.DataInstances.Find(tx, instanceGUID)
		return err
	})
	if err != nil {
		return p, err
	}
	if i != nil {
		svc, _, _ := known(i)
		if _, ok := svc.engine.(recoverer); ok {
			return s.broker.points(i)
		}
	}
	return p, cf.Unprocessable("Only service instances of the built-in broker's services postgres and redis have point-in-time recovery.")
}

// points reads the names of an instance's base backups.
func (b *broker) points(i *cf.DataInstance) (p Points, err error) {
	err = b.Volumes.Read(i.GUID, func(root *os.Root) error {
		if _, err := root.Lstat(archiveOn); err != nil {
			return ignoreMissing(err)
		}
		p.Enabled = true
		names, err := namesIn(root, archiveDir)
		for _, name := range names {
			rest, ok := strings.CutPrefix(name, basePrefix)
			_, at, _ := strings.Cut(rest, "-")
			if t, err := time.Parse(baseTime, at); ok && err == nil {
				p.bases = append(p.bases, basePoint{name, t})
			}
		}
		return err
	})
	if len(p.bases) > 0 {
		now := time.Now().UTC()
		first := slices.MinFunc(p.bases, func(a, b basePoint) int { return a.at.Compare(b.at) })
		p.First, p.Last = &first.at, &now
	}
	return p, err
}

// namesIn lists a directory, sorted; one that is missing is empty.
func namesIn(root *os.Root, dir string) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // does not wait, whatever it is
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// spare is the room that a restore leaves on the machine's disk.
const spare = 256 << 20

var errNoRoom = errors.New("there is no room for it on this machine's disk")

// fillFromPoint gives the volume of a new instance what it is restored from.
func (b *broker) fillFromPoint(ctx context.Context, i *cf.DataInstance, want parameters) error {
	f, err := b.Temp()
	if err != nil {
		return err
	}
	defer f.Close()
	used, err := b.Volumes.Used(want.Of)
	if err != nil {
		return err
	}
	if disk.CheckRoom(filepath.Dir(f.Name()), "a restore", 2*used+spare) != nil {
		return errNoRoom
	}
	points, err := b.points(&cf.DataInstance{Resource: cf.Resource{GUID: want.Of}})
	if err != nil {
		return err
	}
	base, err := points.base(want.Before)
	if err != nil {
		return err
	}
	s, p, _ := known(i)
	r, ok := s.engine.(recoverer)
	if !ok {
		return errNoPoint
	}
	err = b.Volumes.Read(want.Of, func(root *os.Root) error { return writeSeed(ctx, root, r, archiveDir+"/"+base, want.Before, f) })
	if err != nil {
		return fmt.Errorf("copy what the restore needs: %w", err)
	}
	return b.Volumes.Replace(ctx, i.GUID, volumeOf(s, p), f)
}

// writeSeed writes a tar of what the script of a new instance recovers a time from, by a base backup. The server goes on meanwhile.
func writeSeed(ctx context.Context, root *os.Root, r recoverer, base string, before time.Time, w io.Writer) error {
	s := &seedWriter{ctx: ctx, root: root, tar: tar.NewWriter(w)}
	err := errors.Join(s.directory(seedDir), r.seed(s, base, before))
	return errors.Join(err, s.tar.Close())
}

// openFile opens a file of a volume. The container's processes may do with theirs what they like meanwhile, so it is
// opened without waiting and must be a regular one.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		_ = f.Close()
	}
	return f, info, err
}

// seedWriter writes a seed.
type seedWriter struct {
	ctx  context.Context
	root *os.Root
	tar  *tar.Writer
}

func (s *seedWriter) entry(h tar.Header) error {
	h.Uid, h.Gid, h.ModTime = contract.VcapID, contract.VcapID, time.Now()
	return s.tar.WriteHeader(&h)
}

func (s *seedWriter) directory(name string) error {
	return s.entry(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700})
}

func (s *seedWriter) text(name, content string) error {
	err := s.entry(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(s.tar, content)
	}
	return err
}

// file copies a file.
func (s *seedWriter) file(from, to string) error {
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	f, info, err := openFile(s.root, from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.entry(tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(s.tar, f, info.Size())
	return err
}
