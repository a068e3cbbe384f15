package cell

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// startTicks is when a process started, in clock ticks since boot; 0 if there
// is none.
func startTicks(pid int) uint64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parseStartTicks(stat)
}

// parseStartTicks reads the 22nd field of /proc/PID/stat. The second, the name
// in parentheses, may hold spaces and parentheses of its own.
func parseStartTicks(stat []byte) uint64 {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 20 {
		return 0
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

// Signal signals the process if it is still the one that was started.
func (p foundProcess) Signal(sig syscall.Signal) error {
	if !p.alive() {
		return errEnded
	}
	return syscall.Kill(p.PID, sig)
}
