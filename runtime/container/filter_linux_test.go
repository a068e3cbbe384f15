package container

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// run executes the filter as the kernel would for a system call.
func run(t *testing.T, program []byte, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.NativeEndian.PutUint32(data[offNumber:], nr)
	binary.NativeEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.NativeEndian.PutUint64(data[offArgs+8*i:], a)
	}
	var acc uint32
	for pc := 0; ; pc++ {
		code := binary.NativeEndian.Uint16(program[8*pc:])
		yes, no := int(program[8*pc+2]), int(program[8*pc+3])
		k := binary.NativeEndian.Uint32(program[8*pc+4:])
		test := false
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(data[k:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return k
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			test = acc == k
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			test = acc >= k
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			test = acc&k != 0
		default:
			t.Fatalf("instruction %d has code %#x", pc, code)
		}
		if test {
			pc += yes
		} else {
			pc += no
		}
	}
}

func TestFilter(t *testing.T) {
	program, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(program) / 8; n > 400 {
		t.Errorf("got %d instructions; want a few hundred at most", n)
	}
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"read", unix.SYS_READ, nil, allow},
		{"execve", unix.SYS_EXECVE, nil, allow},
		{"clone thread", unix.SYS_CLONE, []uint64{thread}, allow},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allow},
		{"clone user", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, denied},
		{"clone net and more", unix.SYS_CLONE, []uint64{thread | unix.CLONE_NEWNET}, denied},
		{"clone3", unix.SYS_CLONE3, nil, unknown},
		{"unshare", unix.SYS_UNSHARE, nil, denied},
		{"setns", unix.SYS_SETNS, nil, denied},
		{"mount", unix.SYS_MOUNT, nil, denied},
		{"bpf", unix.SYS_BPF, nil, denied},
		{"keyctl", unix.SYS_KEYCTL, nil, denied},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, nil, denied},
		{"userfaultfd", unix.SYS_USERFAULTFD, nil, denied},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, nil, denied},
		{"unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, allow},
		{"inet socket", unix.SYS_SOCKET, []uint64{unix.AF_INET}, allow},
		{"inet6 socket", unix.SYS_SOCKET, []uint64{unix.AF_INET6}, allow},
		{"route socket", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allow},
		{"netfilter socket", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, noProto},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, noFamily},
		{"alg with high bits", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_ALG}, noFamily},
		{"personality", unix.SYS_PERSONALITY, []uint64{0xffffffff}, allow},
		{"no randomize", unix.SYS_PERSONALITY, []uint64{0x40000}, denied},
		{"ioctl", unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, allow},
		{"type into terminal", unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, denied},
		{"later than the table", 470, nil, unknown},
		{"never", 0xffffffff, nil, unknown},
	} {
		if got := run(t, program, auditArch, c.nr, c.args...); got != c.want {
			t.Errorf("%s: got %#x; want %#x", c.name, got, c.want)
		}
	}
	if got := run(t, program, unix.AUDIT_ARCH_I386, unix.SYS_READ); got != unknown {
		t.Errorf("foreign architecture: got %#x; want %#x", got, unknown)
	}
	if foreignABI != 0 {
		if got := run(t, program, auditArch, unix.SYS_READ|foreignABI); got != unknown {
			t.Errorf("foreign number: got %#x; want %#x", got, unknown)
		}
	}
}

// TestFilterIsThePolicy holds the tree against the table, number by number.
func TestFilterIsThePolicy(t *testing.T) {
	program, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	all := verdicts()
	last := uint32(0)
	for nr := range all {
		last = max(last, nr)
	}
	for nr := range uint32(1024) {
		want := denied
		if v, ok := all[nr]; ok && len(v) == 1 {
			want = v[0].K
		} else if ok {
			continue // depends on arguments
		} else if nr > last {
			want = unknown
		}
		if got := run(t, program, auditArch, nr); got != want {
			t.Errorf("call %d: got %#x; want %#x", nr, got, want)
		}
	}
}
