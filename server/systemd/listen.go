package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstFD is the first of the sockets that a manager hands over:
// SD_LISTEN_FDS_START.
const firstFD = 3

// maxListeners is how many sockets may be handed over: some that units name, and
// one for each port that there can be.
const maxListeners = 1<<16 + 64

// Listeners returns the sockets that the service manager passed to this
// process, by FileDescriptorName=, or none. It removes them from the
// environment.
func Listeners() (map[string]net.Listener, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxListeners {
		return nil, fmt.Errorf("LISTEN_FDS is %q", count)
	}
	list := strings.Split(names, ":")
	if n > 0 && len(list) != n {
		return nil, fmt.Errorf("the service manager hands over %d sockets and names %d (%q)", n, len(list), names)
	}
	all := map[string]net.Listener{}
	for i := range n {
		l, err := listener(firstFD+i, list[i])
		if err == nil && all[list[i]] != nil {
			err = errors.Join(fmt.Errorf("the socket %q is handed over twice", list[i]), l.Close())
		}
		if err != nil {
			for _, l := range all {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		all[list[i]] = l
	}
	return all, nil
}

func listener(fd int, name string) (net.Listener, error) {
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), name)
	if f == nil {
		return nil, fmt.Errorf("the socket %q is none", name)
	}
	defer f.Close() // the listener has its own
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket %q: %w", name, err)
	}
	return l, nil
}
