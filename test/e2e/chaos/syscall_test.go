package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cupola/test/e2e"
)

// syscallFault is a system call, in all its forms, and the errors that a kernel
// gives for it.
type syscallFault struct {
	calls  string // as strace lists them; "?": those that the architecture has
	errors []string
}

// syscallFaults are what fails. Left out are the calls of Go's own runtime whose
// failure ends any Go program: futex, mmap, and write, by which it wakes itself.
// clone, too, may fail with EAGAIN alone, and the runtime tries it again.
var syscallFaults = []syscallFault{
	{"pwrite64", []string{"EIO", "ENOSPC", "EINTR"}},
	{"pread64", []string{"EIO", "EINTR"}},
	{"fsync,fdatasync", []string{"EIO", "ENOSPC"}},
	{"ftruncate", []string{"EIO", "ENOSPC", "EINTR"}},
	{"openat", []string{"EIO", "ENOSPC", "EMFILE", "ENFILE", "ENOMEM", "EINTR"}},
	{"?rename,?renameat,?renameat2", []string{"EIO", "ENOSPC"}},
	{"?mkdir,mkdirat", []string{"EIO", "ENOSPC", "ENOMEM"}},
	{"?unlink,unlinkat", []string{"EIO", "ENOMEM"}},
	{"?link,linkat", []string{"EIO", "ENOSPC"}},
	{"getdents64", []string{"EIO", "ENOMEM"}},
	{"accept4", []string{"EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ECONNABORTED", "EINTR"}},
	{"socket", []string{"EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"}},
	{"connect", []string{"ENOBUFS", "EADDRNOTAVAIL", "ETIMEDOUT", "EINTR"}},
	{"sendmsg,sendto", []string{"ENOBUFS", "EINTR"}},
	{"recvmsg,recvfrom", []string{"ENOBUFS", "ENOMEM", "EINTR"}},
	{"mount", []string{"ENOMEM", "EIO"}},
	{"umount2", []string{"EBUSY", "ENOMEM"}},
	{"pipe2", []string{"EMFILE", "ENFILE"}},
	{"clone,?clone3", []string{"EAGAIN"}},
	{"pidfd_open", []string{"EMFILE", "ENFILE", "ENOMEM"}},
}

// failingCalls makes a system call of the daemon fail, each N-th time of each
// thread, while tenants work and an app is pushed, restarted and deleted.
func failingCalls(c *chaos) {
	f := syscallFaults[c.rand.IntN(len(syscallFaults))]
	inject := fmt.Sprintf("%s:error=%s:when=%d+%d", f.calls, f.errors[c.rand.IntN(len(f.errors))], 1+c.rand.IntN(2), 2+c.rand.IntN(6))
	pid := c.d.Cmd.Process.Pid
	had := c.resources()
	failed := 0
	c.exercised(func() { failed = c.inject(pid, f.calls, inject) })
	if !e2e.Alive(pid) {
		c.t.Errorf("the daemon ended when system calls failed: %s", inject)
		return
	}
	c.t.Logf("%s: %d calls failed", inject, failed)
	c.works()
	c.givesBack(had)
}

// inject lets strace make system calls of all threads fail for a while, and
// counts them. It follows no children: an app's own calls do not fail.
func (c *chaos) inject(pid int, calls, inject string) (failed int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{"-qq", "-e", "signal=none", "-e", "trace=" + calls, "-e", "inject=" + inject}
	for _, task := range tasks {
		args = append(args, "-p", task.Name())
	}
	var said bytes.Buffer
	cmd := exec.Command("strace", args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	<-time.After(2 * faultTime)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		c.t.Errorf("strace: %v", err)
	}
	_ = cmd.Wait() // it ends by the signal, once the threads are let go
	failed = strings.Count(said.String(), "(INJECTED)")
	if strings.HasPrefix(said.String(), "strace: ") {
		c.t.Error(said.String())
	}
	return failed
}
