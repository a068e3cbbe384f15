package thread

import (
	"errors"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

var plain, thrown int // the threads of goroutines that the first one started

// TestMain has one thread run all goroutines, as the one that starts another waits for it.
func TestMain(m *testing.M) {
	before := runtime.GOMAXPROCS(1)
	threads := make(chan int)
	go func() { threads <- unix.Gettid() }()
	plain = <-threads
	err := Throwaway("test", func() error {
		thrown = unix.Gettid()
		return nil
	})
	runtime.GOMAXPROCS(before)
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestNeverTheFirstThread(t *testing.T) {
	t.Logf("the process is %d, a goroutine ran on %d, Throwaway on %d", os.Getpid(), plain, thrown)
	if thrown == 0 || thrown == os.Getpid() {
		t.Error("Throwaway ran on the first thread")
	}
}

// A thread that was put back goes on with other goroutines; one that was not ends.
func TestBorrowedThreads(t *testing.T) {
	for _, restored := range []bool{true, false} {
		var borrowed int
		err := Borrow("test", func() (bool, error) {
			borrowed = unix.Gettid()
			return restored, io.EOF
		})
		if err != io.EOF || borrowed == os.Getpid() {
			t.Errorf("got %v on %d, with %d the first thread", err, borrowed, os.Getpid())
		}
		if !restored {
			for unix.Tgkill(os.Getpid(), borrowed, 0) == nil {
				runtime.Gosched() // it is about to end
			}
		} else if err := unix.Tgkill(os.Getpid(), borrowed, 0); err != nil {
			t.Errorf("a thread that was put back has ended: %v", err)
		}
	}
}

// A panic is an error, and ends the thread.
func TestBorrowPanics(t *testing.T) {
	var borrowed int
	err := Borrow("test", func() (bool, error) {
		borrowed = unix.Gettid()
		panic("deliberate")
	})
	if _, is := errors.AsType[*fault.Panic](err); !is {
		t.Errorf("got %v; want a panic", err)
	}
	for unix.Tgkill(os.Getpid(), borrowed, 0) == nil {
		runtime.Gosched()
	}
}
