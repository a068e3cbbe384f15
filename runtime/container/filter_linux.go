package container

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"cupola/runtime/durable"
)

// The seccomp filter is assembled here rather than by libseccomp in every
// container's init, where that takes more time than all the rest of a start.
// Ranges of numbers with the same verdict make a binary search tree, so that
// the kernel runs some ten instructions for a call, where a list has hundreds.

// Offsets in struct seccomp_data; arguments are read as their low 32 bits, all
// that the kernel uses of the ones tested here.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

const (
	allow    = unix.SECCOMP_RET_ALLOW
	denied   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	noProto  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

// verdict is the code run for a call: most often a single return.
type verdict []unix.SockFilter

// span is the verdict for the numbers from first up to the next span's.
type span struct {
	first uint32
	verdict
}

// filterName is the seccomp program in the helper's directory.
const filterName = "seccomp.bpf"

// writeFilter puts the seccomp program where containers see it.
func writeFilter(dir string) error {
	program, err := filter()
	if err != nil {
		return err
	}
	if err := durable.Ensure(filepath.Join(dir, filterName), program, 0o444); err != nil {
		return fmt.Errorf("write seccomp filter: %w", err)
	}
	return nil
}

// filter returns the program as an array of struct sock_filter.
func filter() ([]byte, error) {
	spans := spansOf(verdicts())
	tree, err := searchTree(spans)
	if err != nil {
		return nil, err
	}
	program := append(prologue(), tree...)
	var out bytes.Buffer
	if err := binary.Write(&out, binary.NativeEndian, program); err != nil {
		return nil, fmt.Errorf("encode seccomp filter: %w", err)
	}
	return out.Bytes(), nil
}

// prologue refuses foreign system call tables and loads the number.
func prologue() []unix.SockFilter {
	code := []unix.SockFilter{
		load(offArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		ret(unknown),
		load(offNumber),
	}
	if foreignABI != 0 {
		code = append(code, jump(unix.BPF_JGE, foreignABI, 0, 1), ret(unknown))
	}
	return code
}

// verdicts is the policy. Numbers that are not in it are denied if they are
// lower than the highest that is; higher ones came with a later kernel and do
// not exist, so that C libraries fall back to what does.
func verdicts() map[uint32]verdict {
	all := map[uint32]verdict{
		// Its flags lie in memory, where no filter sees them. C libraries fall back to clone.
		unix.SYS_CLONE3:      {ret(unknown)},
		unix.SYS_CLONE:       cloneVerdict(),
		unix.SYS_SOCKET:      socketVerdict(),
		unix.SYS_PERSONALITY: personalityVerdict(),
		unix.SYS_IOCTL:       ioctlVerdict(),
	}
	for _, nr := range slices.Concat(alwaysAllowed(), archAllowed()) {
		all[nr] = verdict{ret(allow)}
	}
	return all
}

func cloneVerdict() verdict {
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	return verdict{load(arg(0)), jump(unix.BPF_JSET, namespaces, 0, 1), ret(denied), ret(allow)}
}

// socketVerdict allows local and internet sockets, and of netlink what lists
// links, routes and sockets.
func socketVerdict() verdict {
	return verdict{
		load(arg(0)),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 4, 0),
		jump(unix.BPF_JEQ, unix.AF_INET, 3, 0),
		jump(unix.BPF_JEQ, unix.AF_INET6, 2, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 2, 0),
		ret(noFamily),
		ret(allow),
		load(arg(2)),
		jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 2, 0),
		jump(unix.BPF_JEQ, unix.NETLINK_SOCK_DIAG, 1, 0),
		ret(noProto),
		ret(allow),
	}
}

// personalityVerdict allows Linux, Linux32, both with the version number of 2.6,
// and asking.
func personalityVerdict() verdict {
	return verdict{
		load(arg(0)),
		jump(unix.BPF_JEQ, 0, 5, 0),
		jump(unix.BPF_JEQ, 0x8, 4, 0),
		jump(unix.BPF_JEQ, 0x20000, 3, 0),
		jump(unix.BPF_JEQ, 0x20008, 2, 0),
		jump(unix.BPF_JEQ, 0xffffffff, 1, 0),
		ret(denied),
		ret(allow),
	}
}

// ioctlVerdict keeps processes from typing into their terminal.
func ioctlVerdict() verdict {
	return verdict{
		load(arg(1)),
		jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0),
		jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1),
		ret(denied),
		ret(allow),
	}
}

// spansOf joins neighbours with the same verdict and fills the gaps.
func spansOf(all map[uint32]verdict) []span {
	var spans []span
	add := func(first uint32, v verdict) {
		if n := len(spans); n == 0 || !slices.Equal(spans[n-1].verdict, v) {
			spans = append(spans, span{first, v})
		}
	}
	next := uint32(0)
	for _, nr := range slices.Sorted(maps.Keys(all)) {
		if nr > next {
			add(next, verdict{ret(denied)})
		}
		add(nr, all[nr])
		next = nr + 1
	}
	add(next, verdict{ret(unknown)})
	return spans
}

// searchTree compares with the middle span's first number: lower ones go on
// with the next instruction.
func searchTree(spans []span) ([]unix.SockFilter, error) {
	if len(spans) == 1 {
		return spans[0].verdict, nil
	}
	mid := len(spans) / 2
	low, err := searchTree(spans[:mid])
	if err != nil {
		return nil, err
	}
	high, err := searchTree(spans[mid:])
	if err != nil {
		return nil, err
	}
	if len(low) > 255 {
		return nil, fmt.Errorf("assemble seccomp filter: jump over %d instructions", len(low))
	}
	root := jump(unix.BPF_JGE, spans[mid].first, uint8(len(low)), 0)
	return slices.Concat([]unix.SockFilter{root}, low, high), nil
}

func arg(n uint32) uint32 { return offArgs + 8*n }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(condition uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | condition, K: k, Jt: yes, Jf: no}
}

func ret(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
