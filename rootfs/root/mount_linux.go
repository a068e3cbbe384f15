package root

import (
	"errors"
	"os"

	"cupola/rootfs/overlay"
)

// mountRoot mounts the overlay that is a container's root.
func (s *Roots) mountRoot(r Request, lowers []string, upper, work string) error {
	base, err := s.openBase(r)
	if err != nil {
		return err
	}
	defer base.Close()
	o := overlay.Open{Point: s.rootPath(r.ID)}
	defer o.Close()
	for _, name := range lowers {
		if err := o.Lower(base, name); err != nil {
			return err
		}
	}
	if err := errors.Join(o.Writable(upper, work), o.Mount()); err != nil || r.ShowLayers {
		return err
	}
	return overlay.Unmount(s.lowerPath(r.ID)) // the overlay has its own clones of it
}

// openBase opens the store's directory with the owners that the container sees.
func (s *Roots) openBase(r Request) (*os.File, error) {
	dir, err := overlay.OpenPath(s.store.Dir)
	if err != nil || !s.shifted(r.Users) {
		return dir, err
	}
	defer dir.Close()
	return overlay.Shift(dir, s.store.IDs, r.Users, s.lowerPath(r.ID))
}
