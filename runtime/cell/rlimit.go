package cell

import (
	"golang.org/x/sys/unix"

	"cupola/runtime/lrp"
)

// sayLimits logs which limits of a process are cut: nothing that the daemon
// starts may have more than the daemon itself. AllFiles asks for no more.
func (b *build) sayLimits(r *lrp.Run) {
	for _, l := range []struct {
		what     string
		resource int
		wanted   uint64
		unit     string // of systemd
	}{{"open files", unix.RLIMIT_NOFILE, r.Nofile, "LimitNOFILE"}, {"processes", unix.RLIMIT_NPROC, r.Nproc, "LimitNPROC"}} {
		var own unix.Rlimit
		if err := unix.Getrlimit(l.resource, &own); err == nil && l.wanted > own.Max && l.wanted != lrp.AllFiles {
			b.errorf("Cell %s limits the %s of %s to %d instead of %d: the daemon itself may have no more (raise it by ulimit, or %s of its service)", b.cellID(), l.what, r.Path, own.Max, l.wanted, l.unit)
		}
	}
}
