package databroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cupola/rootfs/disk"
	"cupola/runtime/pattern"
	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

// ContentParameter is the parameter that names the content which a new instance is made of.
const ContentParameter = "restore_from_content"

// Content is a volume's content, as a tar that Volumes.Save wrote, on its way to a new service instance: a
// file in a directory that only root enters.
type Content struct {
	*os.File
	ID string // the value of ContentParameter
}

// contentRule is what IDs of contents are made of. No name of an instance's own content is one, so no tenant can name that of another.
var contentRule = pattern.Lazy(`^[A-Z2-7]{26,52}$`)

// contentAge is how long the broker keeps a content that no request names.
const contentAge = 24 * time.Hour

// NewContent makes an empty content in the directory of a daemon's contents, with room for as many bytes as it will have.
func NewContent(dir string) (Content, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Content{}, err
	}
	id := rand.Text()
	f, err := os.OpenFile(filepath.Join(dir, id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return Content{f, id}, err
}

// Drop deletes the content, unless the broker has it by now.
func (c Content) Drop() error { return errors.Join(c.Close(), ignoreMissing(os.Remove(c.Name()))) }

// contentOf is the file of the content that an instance is made of.
func (b *broker) contentOf(instanceGUID string) string {
	return filepath.Join(b.Content, "of-"+instanceGUID)
}

// takeContent makes a content that was named an instance's own: the client that sent it can no longer drop it. It may be called again.
func (b *broker) takeContent(instanceGUID string, want parameters) error {
	if want.Content == "" {
		return nil
	}
	if _, err := os.Lstat(b.contentOf(instanceGUID)); err == nil {
		return nil
	}
	err := fs.ErrNotExist
	if contentRule().MatchString(want.Content) {
		err = os.Rename(filepath.Join(b.Content, want.Content), b.contentOf(instanceGUID))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return builtin.Refuse(http.StatusBadRequest, "invalid %s: this daemon has no such content; 'cupola services restore --from' brings it, as root on the daemon's machine", ContentParameter)
	}
	return err
}

// fillFromContent gives the volume of a new instance its content. It may be asked again.
func (b *broker) fillFromContent(ctx context.Context, i *cf.DataInstance) error {
	f, err := os.Open(b.contentOf(i.GUID))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("its content is not here any longer: delete the service instance, and restore again")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if disk.CheckRoom(b.Content, "a restore", info.Size()+spare) != nil {
		return errNoRoom
	}
	s, p, _ := known(i)
	err = b.Volumes.Replace(ctx, i.GUID, volumeOf(s, p), f)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the plan %s has less disk than the content needs: %w", p.name, err)
	}
	return err
}

// dropContent deletes the content that an instance was made of.
func (b *broker) dropContent(instanceGUID string) error {
	return ignoreMissing(os.Remove(b.contentOf(instanceGUID)))
}

// sweepContent deletes contents that who brought them, or an earlier daemon, had no time to delete. One that its instance was not
// made for yet is kept for a while: the platform may ask for the instance again.
func (b *broker) sweepContent(ctx context.Context) error {
	entries, err := os.ReadDir(b.Content)
	if err != nil {
		return ignoreMissing(err)
	}
	states := map[string]cf.DataState{}
	err = b.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.DataInstances.All(tx)
		for _, i := range rows {
			states[filepath.Base(b.contentOf(i.GUID))] = i.State
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		state, known := states[e.Name()]
		info, ierr := e.Info()
		if ierr != nil || state == cf.DataNew || !known && time.Since(info.ModTime()) < contentAge {
			continue
		}
		err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(b.Content, e.Name()))))
	}
	return err
}
