package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// taken is something that the kernel counts by user: make takes one more of it,
// at most max times.
type taken struct {
	name string
	max  int
	make func() error
}

func all() []taken {
	return []taken{{"inotify", 20000, makeInotify}, {"flying", 80000, sendDescriptor()}, {"pipe", 4000, makePipe}, {"signal", 200000, queueSignal}}
}

// take takes all that there is of each, tells how much that was, and waits.
func take() {
	for _, t := range all() {
		n, err := 0, error(nil)
		for ; n < t.max && err == nil; n++ {
			err = t.make()
		}
		fmt.Println(t.name, n, err)
	}
	fmt.Println("ready")
	pause()
}

// modest takes a few of each.
func modest() {
	for _, t := range all() {
		var err error
		for range 10 {
			err = errors.Join(err, t.make())
		}
		fmt.Println(t.name, err)
	}
}

func makeInotify() error {
	_, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	return err
}

// sendDescriptor puts a descriptor into a socket without a reader, 100 at a time.
func sendDescriptor() func() error {
	rights := make([]int, 100)
	return func() error {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(pair[0])
		for i := range rights {
			rights[i] = pair[0]
		}
		return syscall.Sendmsg(pair[0], []byte{0}, syscall.UnixRights(rights...), nil, syscall.MSG_DONTWAIT)
	}
}

// makePipe makes a pipe of 16 pages; the kernel allows a user some pages in all.
func makePipe() error {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	const getSize, usual = 1032, 64 << 10
	size, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(p[0]), getSize, 0)
	if errno != 0 {
		return errno
	}
	if size < usual {
		return fmt.Errorf("pipe of %d bytes", size)
	}
	return nil
}

// queueSignal queues a signal that this process blocks.
func queueSignal() error {
	const signal = 40 // a real-time one, which queues
	mask := [1]uint64{1 << (signal - 1)}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0)
	info := [128]byte{}
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	pid := os.Getpid()
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(syscall.Gettid()), signal, uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
