//go:build linux

package boot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// options is what the daemon asks of init.
type options struct {
	seccomp   string // file with the BPF program; empty installs none
	cgroupFDs []int  // inherited descriptors of cgroup.procs or tasks files
	argv      []string
}

// parse reads init's command line. The flag package is left out: this
// program's start is on the path of every container.
func parse(args []string) (options, error) {
	var o options
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if !joined {
			if len(args) == 0 {
				return o, fmt.Errorf("flag %s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		if err := o.set(name, value); err != nil {
			return o, err
		}
	}
	if len(args) == 0 || args[0] == "" {
		return o, errors.New("no command to execute")
	}
	o.argv = args
	return o, nil
}

func (o *options) set(name, value string) error {
	switch strings.TrimPrefix(name, "-") {
	case "-seccomp":
		o.seccomp = value
	case "-cgroup-fds":
		for _, s := range strings.Split(value, ",") {
			fd, err := strconv.Atoi(s)
			if err != nil || fd < 3 {
				return fmt.Errorf("flag --cgroup-fds: %q is not an inherited descriptor", s)
			}
			o.cgroupFDs = append(o.cgroupFDs, fd)
		}
	default:
		return fmt.Errorf("unknown flag %s", name)
	}
	return nil
}
