package databroker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
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

	bases []time.Time // ascending
}

// errNoPoint says that an instance cannot be restored to a time.
var errNoPoint = errors.New("there is no such point in time")

// base is the newest base backup that has been made by a time.
func (p Points) base(before time.Time) (time.Time, error) {
	switch {
	case !p.Enabled:
		return time.Time{}, fmt.Errorf(`%w: point-in-time recovery is not enabled; for later ones enable it with the parameters {"point_in_time_recovery": true} ('cf update-service NAME -c')`, errNoPoint)
	case p.First == nil:
		return time.Time{}, fmt.Errorf("%w: the first base backup is not made yet, or there was no room for it; the service instance's log says so", errNoPoint)
	case before.Before(*p.First):
		return time.Time{}, fmt.Errorf("%w: the first one is %s", errNoPoint, stamp(*p.First))
	}
	for _, t := range slices.Backward(p.bases) {
		if !t.After(before) {
			return t, nil
		}
	}
	return time.Time{}, errNoPoint
}

// Points lists the points in time that an instance can be restored to. Its server need not run.
func (s *Service) Points(ctx context.Context, instanceGUID string) (p Points, err error) {
	if s == nil {
		return p, cf.Unprocessable("%s", errOff)
	}
	var i *cf.DataInstance
	err = s.broker.Store.Read(ctx, func(tx *store.Tx) error {
		i, err = named(tx, store.DataInstances, instanceGUID)
		return err
	})
	if err != nil {
		return p, err
	}
	if i != nil {
		if svc, _, _ := known(i); svc.recovers {
			return s.broker.points(i)
		}
	}
	return p, cf.Unprocessable("Only service instances of the built-in broker's service postgres have point-in-time recovery.")
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
			if t, err := time.Parse(basePrefix+baseTime, name); err == nil {
				p.bases = append(p.bases, t)
			}
		}
		return err
	})
	if len(p.bases) > 0 {
		now := time.Now().UTC()
		p.First, p.Last = &p.bases[0], &now
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
	err = b.Volumes.Read(want.Of, func(root *os.Root) error {
		return writeSeed(ctx, root, archiveDir+"/"+base.Format(basePrefix+baseTime), want.Before, f)
	})
	if err != nil {
		return fmt.Errorf("copy what the restore needs: %w", err)
	}
	s, p, _ := known(i)
	return b.Volumes.Replace(ctx, i.GUID, volumeOf(s, p), f)
}

// writeSeed writes a tar of what the script of a new instance recovers a time from. The server goes on meanwhile: what is
// not archived yet is copied first, since the server archives a segment of its log before it uses the file again.
func writeSeed(ctx context.Context, root *os.Root, base string, before time.Time, w io.Writer) error {
	s := &seedWriter{ctx: ctx, root: root, tar: tar.NewWriter(w)}
	first, err := firstSegment(root, base)
	if err != nil {
		return err
	}
	to := before.UTC().Format("2006-01-02 15:04:05.999999") + "+00\n"
	err = errors.Join(s.directory(seedDir), s.directory(seedDir+"/pg_wal"), s.directory(seedDir+"/wal"), s.text(seedDir+"/to", to),
		s.segments("pg/pg_wal", seedDir+"/pg_wal", first), s.segments(archiveDir+"/wal", seedDir+"/wal", first),
		s.file(base+"/base.tar.gz", seedDir+"/base.tar.gz"))
	return errors.Join(err, s.tar.Close())
}

// firstSegment reads with which segment the recovery of a base backup begins.
func firstSegment(root *os.Root, base string) (string, error) {
	f, _, err := openFile(root, base+"/start")
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSaid))
	return strings.TrimSpace(string(text)), err
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

// segments copies the segments of a directory from the first on. One that is gone meanwhile was archived before.
func (s *seedWriter) segments(from, to, first string) error {
	names, err := namesIn(s.root, from)
	if err != nil {
		return err
	}
	for _, name := range names {
		segment := strings.TrimSuffix(name, ".gz")
		if len(segment) != len(first) || segment < first {
			continue
		}
		if err := s.file(path.Join(from, name), path.Join(to, name)); ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}

// setRecovery enables or disables point-in-time recovery of a running instance.
func (b *broker) setRecovery(ctx context.Context, i *cf.DataInstance, enabled bool) error {
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	program := archiveNaming.Replace(postgresDisable)
	if enabled {
		program = archiveNaming.Replace(postgresEnable)
	}
	mark := rand.Text()
	return b.attached(ctx, i, func(session io.ReadWriter) error {
		said, err := io.ReadAll(io.LimitReader(session, maxSaid))
		if err != nil {
			return err
		}
		return (&ending{w: io.Discard, held: said}).close(mark)
	}, "if fault=$({\n"+program+"\n} 2>&1); then fault="+succeeded+"; fi\n"+sayFault, mark)
}
