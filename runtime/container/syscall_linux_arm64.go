package container

import "golang.org/x/sys/unix"

const (
	auditArch  = unix.AUDIT_ARCH_AARCH64
	foreignABI = 0 // there is none
)

// archAllowed are the calls that only this architecture has.
func archAllowed() []uint32 {
	return []uint32{
		unix.SYS_RENAMEAT,
	}
}
