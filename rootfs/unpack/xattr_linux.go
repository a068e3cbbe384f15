package unpack

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// setXattrs gives an open file or directory its extended attributes, as far as the file system can hold them.
func (t *target) setXattrs(fd int, e entry) error {
	for name, value := range e.xattrs {
		if name == capability {
			value = t.ownCapability(value)
		}
		if value == "" {
			continue
		}
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil && err != unix.ENOTSUP {
			return fmt.Errorf("unpack %s: set %s: %w", e.name, name, err)
		}
	}
	return nil
}

// The revisions of struct vfs_cap_data: the third adds which user is root where the capability holds.
const (
	capRevisionMask = 0xff000000
	capRevision2    = 0x02000000
	capRevision3    = 0x03000000
	capBytes2       = 20
)

// ownCapability binds a file capability to the user namespace whose root owns the archive's files: it means nothing
// outside of that, on the host least of all. "" for what is none.
func (t *target) ownCapability(value string) string {
	b := []byte(value)
	if t.o.Owner == nil || len(b) != capBytes2 {
		return ""
	}
	magic := binary.LittleEndian.Uint32(b)
	root, _ := t.o.Owner(0, 0)
	if magic&capRevisionMask != capRevision2 || root == 0 {
		return ""
	}
	binary.LittleEndian.PutUint32(b, magic&^uint32(capRevisionMask)|capRevision3)
	return string(binary.LittleEndian.AppendUint32(b, uint32(root)))
}
