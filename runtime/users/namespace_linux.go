package users

/*
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECBIT_NO_SETUID_FIXUP
#define SECBIT_NO_SETUID_FIXUP 4
#endif

// idle only keeps its user namespace. It runs in the memory of the process that
// made it, so it makes system calls alone, none of which fails and sets errno.
static int idle(void *parent) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (syscall(SYS_getppid) != (long)(intptr_t)parent)
		return 0;
	for (;;)
		syscall(SYS_ppoll, 0, 0, 0, 0, 0);
}

// spawn starts idle in a new user namespace owned by the user owner, and
// returns its process ID or a negative error. Meanwhile it changes the
// thread's effective user, without its capabilities, and blocks all signals:
// idle has none, as a handler would run in the parent's memory. Raw system
// calls change only this thread. If it cannot change back it returns -EXDEV.
static long spawn(uid_t owner, void *stack_top) {
	uint64_t all = ~(uint64_t)0, old = 0;
	long pid, bits = prctl(PR_GET_SECUREBITS);

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	if (prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP) < 0) {
		pid = -errno;
		goto out;
	}
	if (syscall(SYS_setresuid, -1, owner, -1) < 0) {
		pid = -errno;
	} else {
		pid = clone(idle, stack_top, CLONE_VM | CLONE_FILES | CLONE_NEWUSER | SIGCHLD, (void *)(intptr_t)getpid());
		if (pid < 0)
			pid = -errno;
		if (syscall(SYS_setresuid, -1, 0, -1) < 0) {
			if (pid > 0)
				kill(pid, SIGKILL);
			pid = -EXDEV;
		}
	}
	if (prctl(PR_SET_SECUREBITS, bits) < 0 && pid >= 0) {
		kill(pid, SIGKILL);
		pid = -EXDEV;
	}
out:
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, sizeof(old));
	return pid;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// idMap maps size IDs from inside on, as a user namespace has them, to those from
// outside on.
type idMap struct{ inside, outside, size uint32 }

// stack is what the process that keeps a namespace runs on. One at a time is made.
var stack struct {
	sync.Mutex
	memory []byte
}

const stackSize = 64 << 10

// Namespace makes the user namespace of a container whose users r are. It lasts as
// long as the file is open or a process is in it.
func Namespace(r Range) (*os.File, error) {
	return namespace(r.Base, idMap{0, r.Base, r.Size})
}

// namespace makes a user namespace that owner has and returns the file that holds
// it. It takes some 100 µs: the process that the kernel wants for it shares this
// one's memory and descriptors, and ends at once.
func namespace(owner uint32, maps ...idMap) (*os.File, error) {
	stack.Lock()
	defer stack.Unlock()
	if stack.memory == nil {
		memory, err := unix.Mmap(-1, 0, stackSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return nil, fmt.Errorf("make user namespace: %w", err)
		}
		stack.memory = memory
	}
	runtime.LockOSThread()
	restore := keepAttributes()
	pid := int(C.spawn(C.uid_t(owner), unsafe.Pointer(&stack.memory[stackSize-16])))
	if pid == -int(unix.EXDEV) {
		return nil, errors.New("make user namespace: a thread lost its user") // it stays locked, and ends with its goroutine
	}
	defer runtime.UnlockOSThread()
	defer restore()
	if pid < 0 {
		return nil, fmt.Errorf("make user namespace: %w", unix.Errno(-pid))
	}
	f, err := mapped(pid, maps)
	err = errors.Join(err, unix.Kill(pid, unix.SIGKILL), reap(pid))
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("make user namespace: %w", err)
	}
	return f, nil
}

// keepAttributes returns what sets two attributes to their values of now. A change
// of user clears them: whether the process leaves a core, and which signal the
// thread gets when the parent ends.
func keepAttributes() (restore func()) {
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var signal int32
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0)
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(signal), 0, 0, 0)
	}
}

// mapped writes the maps of a process' user namespace and opens it.
func mapped(pid int, maps []idMap) (*os.File, error) {
	var text []byte
	for _, m := range maps {
		text = fmt.Appendf(text, "%d %d %d\n", m.inside, m.outside, m.size)
	}
	proc := "/proc/" + strconv.Itoa(pid)
	for _, name := range []string{"/uid_map", "/gid_map"} {
		if err := os.WriteFile(proc+name, text, 0); err != nil {
			return nil, err
		}
	}
	return os.Open(proc + "/ns/user")
}

func reap(pid int) error {
	for {
		_, err := unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			return err
		}
	}
}
