// Package launch is what the daemon and its program cmd/launch say to each other.
//
// The program starts a container's first process with the system calls that this
// takes and nothing else, where the starter (package starter) runs libcontainer.
// What it starts is recorded as libcontainer would: the starter enters it.
//
// The daemon writes a Request to the program's standard input. The program builds
// the container up to the point where its first process would be executed, and
// answers "ready PID". The daemon records the process and writes one byte. The
// program then answers "started", and stays the parent of the process until its
// standard input ends. In place of either answer it may say "error TEXT".
package launch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// answerMax bounds an answer, in bytes.
const answerMax = 4 << 10

// Request asks for a container. Its first process inherits standard input, output
// and error, which are the program's descriptors 3 to 5, and from descriptor 3
// the Files that follow these.
type Request struct {
	// Rootfs, UserNS and NetNS are paths of the host. Without a NetNS the container
	// has a new one.
	Rootfs, UserNS, NetNS string
	// MountNS is the path of the mount namespace that the container's begins as a copy of.
	// It has the host's /proc and an empty directory /root, and its mounts are private.
	MountNS string
	// Cgroup is the directory of the container's cgroup on v2, where the container has a
	// separate cgroup namespace.
	Cgroup   string
	Hostname string
	// OOMScore is the oom_score_adj of the container's processes.
	OOMScore int
	// Stdio selects which of standard input, output and error are inherited; the
	// others are /dev/null.
	Stdio [3]bool
	// Files is how many further descriptors follow them, of which the first Cgroups
	// are tasks files of cgroup v1.
	Files, Cgroups   int
	Mounts           []Mount
	ReadOnly, Masked []string
	Capabilities     Capabilities
	UID, GID         uint32
	Groups           []uint32
	// Args begin with the path of the program in the container. Without HOME, the
	// process has that of the user's account in the container.
	Args, Env []string
	Cwd       string
}

// Mount is a file system of type Type, or with an empty Type a bind mount of a
// host path.
type Mount struct {
	Type, Source, Target string
	Attributes           uint64 // MOUNT_ATTR_…
	Data                 string // options of a file system
	Recursive            bool   // of a bind mount
}

// Capabilities are sets of bits.
type Capabilities struct{ Bounding, Effective, Permitted, Inheritable, Ambient uint64 }

// Encode returns the request as the program reads it: its length, and strings that
// each end with a 0 byte.
func (r Request) Encode() ([]byte, error) {
	var e encoder
	var stdio uint64
	for i, inherited := range r.Stdio {
		if inherited {
			stdio |= 1 << i
		}
	}
	e.add("rootfs", r.Rootfs)
	e.add("userns", r.UserNS)
	e.add("mountns", r.MountNS)
	if r.NetNS != "" {
		e.add("netns", r.NetNS)
	}
	if r.Cgroup != "" {
		e.add("cgroup", r.Cgroup)
	}
	e.add("hostname", r.Hostname)
	e.add("cwd", r.Cwd)
	e.add("oom", strconv.Itoa(r.OOMScore))
	e.number("stdio", stdio)
	e.number("files", uint64(r.Files))
	e.number("cgroups", uint64(r.Cgroups))
	e.mounts(r)
	c := r.Capabilities
	e.number("bounding", c.Bounding)
	e.number("effective", c.Effective)
	e.number("permitted", c.Permitted)
	e.number("inheritable", c.Inheritable)
	e.number("ambient", c.Ambient)
	return e.process(r)
}

// encoder collects the strings of a request.
type encoder struct {
	text []byte
	bad  error
}

func (e *encoder) add(fields ...string) {
	for _, f := range fields {
		if strings.ContainsRune(f, 0) {
			e.bad = fmt.Errorf("%s %q contains a 0 byte", fields[0], f)
		}
		e.text = append(append(e.text, f...), 0)
	}
}

func (e *encoder) number(name string, n uint64) { e.add(name, strconv.FormatUint(n, 10)) }

func (e *encoder) mounts(r Request) {
	for _, m := range r.Mounts {
		attributes := strconv.FormatUint(m.Attributes, 10)
		if m.Type != "" {
			e.add("mount", m.Type, m.Source, m.Target, attributes, m.Data)
			continue
		}
		recursive := "0"
		if m.Recursive {
			recursive = "1"
		}
		e.add("bind", m.Source, m.Target, attributes, recursive)
	}
	for _, path := range r.ReadOnly {
		e.add("readonly", path)
	}
	for _, path := range r.Masked {
		e.add("mask", path)
	}
}

func (e *encoder) process(r Request) ([]byte, error) {
	e.number("uid", uint64(r.UID))
	e.number("gid", uint64(r.GID))
	for _, g := range r.Groups {
		e.number("group", uint64(g))
	}
	for _, a := range r.Args {
		e.add("arg", a)
	}
	env, err := cleanEnv(r.Env)
	if err != nil {
		return nil, err
	}
	for _, v := range env {
		e.add("env", v)
	}
	if e.bad != nil {
		return nil, e.bad
	}
	size := binary.NativeEndian.AppendUint32(nil, uint32(len(e.text)))
	return append(size, e.text...), nil
}

// cleanEnv keeps the last of variables with the same name, and no empty HOME.
func cleanEnv(env []string) ([]string, error) {
	seen := map[string]bool{}
	var kept []string
	for _, v := range slices.Backward(env) {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, errors.New("invalid environment variable: want NAME=VALUE")
		}
		if !seen[name] && (name != "HOME" || value != "") {
			kept = append(kept, v)
		}
		seen[name] = true
	}
	slices.Reverse(kept)
	return kept, nil
}

// RefusalError is why a container was not started, as far as nothing crashed.
type RefusalError string

func (e RefusalError) Error() string { return string(e) }

// Converse asks for a container by in and out, the program's standard input and
// output, and calls record with the first process before it is executed.
func Converse(in io.Writer, out io.Reader, r Request, record func(pid int) error) error {
	text, err := r.Encode()
	if err != nil {
		return RefusalError(err.Error())
	}
	if _, err := in.Write(text); err != nil {
		return err
	}
	answers := bufio.NewReader(io.LimitReader(out, 2*answerMax))
	ready, err := answer(answers, "ready ")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(ready)
	if err != nil || pid <= 0 {
		return fmt.Errorf("bad answer: process %q", ready)
	}
	if err := record(pid); err != nil {
		return RefusalError(err.Error())
	}
	if _, err := in.Write([]byte{'g'}); err != nil {
		return err
	}
	_, err = answer(answers, "started")
	return err
}

// answer reads one answer and returns what follows the word that it has to begin
// with.
func answer(from *bufio.Reader, word string) (string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\n")
	if refusal, ok := strings.CutPrefix(line, "error "); ok {
		return "", RefusalError(refusal)
	}
	rest, ok := strings.CutPrefix(line, word)
	if !ok {
		return "", fmt.Errorf("bad answer: %q", line)
	}
	return rest, nil
}
