package thread

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
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
