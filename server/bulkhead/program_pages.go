package bulkhead

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram lets go of the pages of the program's file that are in memory for this process: the start alone read most
// of them. What is used later is mapped again, from the kernel's cache of the file.
func unmapProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, m := range cleanMappings(string(maps), program) {
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("madvise: %w", failed)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// cleanMappings are those of a file that nothing can write to, and nothing has written to: their pages are the file's.
func cleanMappings(smaps, file string) (all []mapping) {
	var m mapping
	of := false // m is of the file, and cannot be written to
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"): // addresses, permissions, offset, device, inode, name
			of = strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+file) && strings.HasPrefix(fields[1], "r-")
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to); err != nil {
				of = false
			}
		case of && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			all = append(all, m)
		}
	}
	return all
}
