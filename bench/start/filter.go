package main

import "golang.org/x/sys/unix"

// allows runs a seccomp filter for a system call of this machine, with 0 and 1
// as its first argument: a call that is allowed for either counts.
func allows(filter []unix.SockFilter, nr uint32) bool {
	for first := range uint32(2) {
		if verdict(filter, map[uint32]uint32{0: nr, 4: unix.AUDIT_ARCH_X86_64, 16: first}) == unix.SECCOMP_RET_ALLOW {
			return true
		}
	}
	return false
}

// verdict runs the few instructions that our filters are made of on data,
// which is by its offset in struct seccomp_data; 0, which kills, for others.
func verdict(filter []unix.SockFilter, data map[uint32]uint32) uint32 {
	var a uint32
	for pc := 0; pc < len(filter); pc++ {
		i := filter[pc]
		var yes bool
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data[i.K]
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(i.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = a == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = a >= i.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			yes = a > i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = a&i.K != 0
		default:
			return 0
		}
		if yes {
			pc += int(i.Jt)
		} else {
			pc += int(i.Jf)
		}
	}
	return 0
}
