package root

import (
	"crypto/rand"
	"os"
	"slices"
	"time"

	"cupola/rootfs/disk"
	"cupola/runtime/fault"
)

// A third of what it takes to mount a root is its disk: an image, a loop device, a mount. While there are containers, one disk
// of each of their sizes is ready: for another instance of an app, or the next one after a crash.
const (
	runReady = ".ready"
	maxReady = 4
	// readyAfter is how long no root is mounted before disks are made ready, so that many starts at once do not wait for them.
	readyAfter = 300 * time.Millisecond
)

// readyDisk is a size that containers have, and a directory for one with its disk mounted, "" until that is made.
type readyDisk struct {
	size disk.Size
	dir  string
}

// take makes a container's directory, of one that is ready or else of a spare one, and reports whether its disk is mounted. s.mu is held.
func (s *Roots) take(dir string, size disk.Size) (ready bool, err error) {
	at := slices.IndexFunc(s.ready, func(r readyDisk) bool { return r.size == size && r.dir != "" })
	if at < 0 {
		return false, s.takeSpare(dir)
	}
	if err := os.Rename(s.ready[at].dir, dir); err != nil { // as in takeSpare
		return false, err
	}
	s.ready[at].dir = ""
	return true, nil
}

// expect has a disk of a container's size made ready.
func (s *Roots) expect(size disk.Size) {
	if m, _ := s.disks.Method(); m != disk.Loop || size.Bytes == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(s.ready, func(r readyDisk) bool { return r.size == size }); at >= 0 {
		r := s.ready[at]
		s.ready = append(slices.Delete(s.ready, at, at+1), r)
	} else {
		s.ready = append(s.ready, readyDisk{size: size})
	}
	s.dropReady(max(0, len(s.ready)-maxReady))
	if s.soon == nil {
		s.soon = time.AfterFunc(readyAfter, fault.Func("rootfs", s.makeReady))
	}
	s.soon.Reset(readyAfter)
}

// makeReady makes what expect asked for.
func (s *Roots) makeReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ready {
		r := &s.ready[i]
		if r.dir != "" {
			continue
		}
		r.dir = s.store.Path(rootsDir, runReady, rand.Text())
		if err := s.mountReady(*r); err != nil {
			s.store.Log.Debug("no disk was made ready", "bytes", r.size.Bytes, "err", err)
			s.removeReady(*r)
			r.dir = ""
		}
	}
}

func (s *Roots) mountReady(r readyDisk) error {
	if err := s.takeSpare(r.dir); err != nil {
		return err
	}
	return s.makeDisk(r.dir, r.size)
}

// dropReady forgets the first n sizes, which containers had longest ago. s.mu is held.
func (s *Roots) dropReady(n int) {
	for _, r := range s.ready[:n] {
		if r.dir != "" {
			s.removeReady(r)
		}
	}
	s.ready = slices.Delete(s.ready, 0, n)
}

func (s *Roots) removeReady(r readyDisk) {
	if err := s.drop(r.dir); err != nil {
		s.store.Log.Warn("a disk that was ready was not removed", "dir", r.dir, "err", err)
	}
}
