package main

/*
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct request {
	int first, count; // descriptors of tasks files
	int ns;           // the answer, or a negative error
};

// enter moves itself into the cgroups and makes their namespace. It has this
// process's memory and descriptors, and makes system calls alone.
static int enter(void *arg) {
	struct request *r = arg;
	r->ns = 0;
	for (int n = 0; n < r->count && r->ns == 0; n++)
		if (write(r->first + n, "0", 1) < 0)
			r->ns = -errno;
	if (r->ns == 0 && unshare(CLONE_NEWCGROUP) < 0)
		r->ns = -errno;
	if (r->ns == 0 && (r->ns = open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC)) < 0)
		r->ns = -errno;
	_exit(0);
}

// cgroup_namespace runs enter in a child, to whose end this thread waits: when it
// returns, no process of the starter is in the cgroups or counts against their limits. The
// child takes no signal, as a handler would run in this process's memory.
static int cgroup_namespace(int first, int count) {
	static char stack[16 << 10] __attribute__((aligned(16)));
	struct request r = {first, count, -ECHILD};
	sigset_t all, old;
	int pid, err;

	sigfillset(&all);
	if ((err = pthread_sigmask(SIG_SETMASK, &all, &old)))
		return -err;
	pid = clone(enter, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &r);
	if (pid < 0)
		r.ns = -errno;
	else
		while (waitpid(pid, 0, 0) < 0 && errno == EINTR);
	pthread_sigmask(SIG_SETMASK, &old, 0);
	return r.ns;
}
*/
import "C"

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cupola/runtime/container/starter"
)

// makeCgroupNamespace makes the cgroup namespace of a container on cgroup v1,
// where the init joins its cgroups too late for libcontainer to make one. A child
// that moves itself into the cgroups spares the RCU grace period that moving
// another process costs: all of it takes some 0.1 ms. The namespace belongs to
// the host's root, so that nothing in the container has any right over it.
//
// A link at r's CgroupNamespace leads libcontainer to it until done is called.
func makeCgroupNamespace(r starter.Request) (done func(), err error) {
	fd := int(C.cgroup_namespace(C.int(starter.FirstFile+len(r.Stdio)), C.int(r.Cgroups)))
	if fd < 0 {
		return nil, fmt.Errorf("make cgroup namespace: %w", unix.Errno(-fd))
	}
	ns := os.NewFile(uintptr(fd), "cgroup namespace")
	link := starter.CgroupNamespace(r.States, r.ID)
	if err := os.Symlink(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), link); err != nil {
		ns.Close()
		return nil, fmt.Errorf("make cgroup namespace: %w", err)
	}
	return func() {
		ns.Close()
		_ = os.Remove(link) // leads nowhere, and goes with the container's state
	}, nil
}
