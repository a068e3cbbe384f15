package unpack

import (
	"io/fs"
	"path"

	"cupola/runtime/pattern"
)

// memoryDisks are block devices that no disk is behind; tools that make systems' trees put them next to null and zero.
var memoryDisks = pattern.Lazy(`^(loop|ram)[0-9]*$`)

// covered reports whether an image's device is never visible: containers have their own /dev, above
// what the image has there. Images of old systems are full of such; none is made.
func covered(name string, kind fs.FileMode) bool {
	if dir := path.Dir(name); dir != "dev" && path.Dir(dir) != "dev" {
		return false
	}
	return kind&fs.ModeCharDevice != 0 || memoryDisks().MatchString(path.Base(name))
}

// special adds what is neither file nor directory nor link. A FIFO leads nowhere out of its tree. A device would be the
// host's, or for an overlay a mark that hides files, so no image has one but where it is covered.
func (w *walk) special(e entry, kind fs.FileMode) error {
	switch {
	case !w.o.Image:
		return &EntryError{Name: e.name, Reason: "is a device, FIFO or socket"}
	case kind == fs.ModeNamedPipe && e.name == ".":
		return &EntryError{Name: e.name, Reason: "replaces the root with a FIFO"}
	case kind == fs.ModeNamedPipe:
		return w.to.fifo(e)
	case kind&fs.ModeDevice != 0 && covered(e.name, kind):
		return nil
	}
	return &EntryError{Name: e.name, Reason: "is a device"}
}
