//go:build linux

package boot

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxInstructions is the kernel's BPF_MAXINSNS.
const maxInstructions = 4096

// instructionSize is that of struct sock_filter.
const instructionSize = 8

// joinCgroups moves the calling thread into each cgroup and closes the
// descriptors. "0" means the writer itself: on cgroup v1 a single thread that
// moves itself takes no lock that waits for RCU.
func joinCgroups(fds []int) error {
	for _, fd := range fds {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return fmt.Errorf("join cgroup by descriptor %d: %w", fd, err)
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close descriptor %d of a cgroup: %w", fd, err)
		}
	}
	return nil
}

// closeOnExec keeps every descriptor but the standard ones from the app: one
// that leaked from the daemon would be a way out of the sandbox.
func closeOnExec() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Kernels before 5.11; as many as a daemon's leak could plausibly reach.
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}

// confine sets no_new_privs, without which an unprivileged process may not
// install a filter, and installs the program of file.
func confine(file string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read seccomp filter: %w", err)
	}
	n := len(code) / instructionSize
	if n == 0 || n > maxInstructions || len(code)%instructionSize != 0 {
		return fmt.Errorf("seccomp filter %s: %d bytes is not a BPF program", file, len(code))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	// Copied, so that the kernel sees the alignment of struct sock_filter.
	program := make([]unix.SockFilter, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(code)), code)
	fprog := unix.SockFprog{Len: uint16(n), Filter: &program[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("install seccomp filter of %d instructions: %w", n, errno)
	}
	return nil
}
