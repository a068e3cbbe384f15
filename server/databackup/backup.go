package databackup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"cupola/rootfs/disk"
	"cupola/store"
	"cupola/store/cf"
)

// spare is the room that a backup leaves on the disk for all else.
const spare = 256 << 20

var (
	errNoRoom = errors.New("there is no room for it on this machine's disk")
	errGone   = errors.New("the backup or its service instance was deleted meanwhile")
)

// backup makes the backup of a row, unless it was made before. It deletes old ones of the
// instance, but none with the GUID keep.
func (l *Loop) backup(ctx context.Context, guid, keep string) error {
	b, err := l.row(ctx, guid)
	if err != nil || b.State == cf.BackupReady {
		return err
	}
	used, err := l.Data.Used(b.InstanceGUID)
	if err != nil {
		return err
	}
	if disk.CheckRoom(l.Dir, "a backup", used+spare) != nil {
		return errNoRoom
	}
	if err := l.dump(ctx, b); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return errNoRoom
		}
		return err
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		if _, err := store.DataBackups.Get(tx, b.GUID); err != nil {
			return gone(err)
		}
		b.State = cf.BackupReady
		if err := store.DataBackups.Update(tx, b); err != nil {
			return err
		}
		return l.dropOld(tx, b.InstanceGUID, keep)
	})
}

// row reads the row of a backup.
func (l *Loop) row(ctx context.Context, guid string) (b *cf.DataBackup, err error) {
	err = l.Store.Read(ctx, func(tx *store.Tx) error {
		b, err = store.DataBackups.Get(tx, guid)
		return gone(err)
	})
	return b, err
}

// gone says in other words that a row is not there.
func gone(err error) error {
	if store.IsNotFound(err) {
		return errGone
	}
	return err
}

// dump writes the content of an instance to a blob, which b names then.
func (l *Loop) dump(ctx context.Context, b *cf.DataBackup) error {
	raw := make([]byte, 32)
	rand.Read(raw)
	b.Key = hex.EncodeToString(raw)
	t, err := l.Blobs.Temp()
	if err != nil {
		return err
	}
	defer t.Discard()
	s, err := newSealer(t, b.Key)
	if err != nil {
		return err
	}
	if b.Version, err = l.Data.Dump(ctx, b.InstanceGUID, s); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	kept, err := t.Commit()
	b.Digest, b.Size = kept.Digest, s.size
	return err
}

// dropOld deletes the oldest backups of an instance.
func (l *Loop) dropOld(tx *store.Tx, instance, keep string) error {
	all, err := store.DataBackups.Where(tx, map[string][]string{"service_instance_guids": {instance}, "states": {cf.BackupReady}})
	most := l.Keep()
	if err != nil || len(all) <= most {
		return err
	}
	slices.SortFunc(all, func(a, b *cf.DataBackup) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for _, b := range all[most:] {
		if b.GUID == keep {
			continue
		}
		if err := store.DataBackups.Delete(tx, b.GUID); err != nil {
			return err
		}
	}
	return nil
}

// restore replaces the content of an instance. A backup is opened to its end before any
// of it reaches the instance.
func (l *Loop) restore(ctx context.Context, instance, guid string) error {
	b, err := l.row(ctx, guid)
	if err != nil {
		return err
	}
	if disk.CheckRoom(l.Dir, "a restore", b.Size+spare) != nil {
		return errNoRoom
	}
	t, err := l.Blobs.Temp()
	if err != nil {
		return err
	}
	defer t.Discard()
	if err := os.Remove(t.Name()); err != nil { // it is not sealed
		return err
	}
	if err := l.Open(b, t); err != nil {
		return err
	}
	return l.Data.Load(ctx, instance, b.Version, t.File)
}

// Open writes the content of a backup.
func (l *Loop) Open(b *cf.DataBackup, to io.Writer) error {
	f, err := l.Blobs.Open(b.Digest)
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer f.Close()
	return unseal(to, f, b.Key)
}
