package container

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process.
type stat struct {
	zombie          bool
	parent, session int
	ticks           uint64 // since boot, when it started
	status          syscall.WaitStatus
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, unix.ESRCH
	}
	return parseStat(data)
}

func parseStat(line []byte) (stat, error) {
	// The name in parentheses may hold spaces and its own parentheses.
	end := bytes.LastIndexByte(line, ')')
	fields := bytes.Fields(line[end+1:]) // from the third
	if end < 0 || len(fields) < 20 {
		return stat{}, errors.New("read process status: short line")
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	parent, err2 := strconv.Atoi(string(fields[1]))
	session, err3 := strconv.Atoi(string(fields[3]))
	s := stat{zombie: string(fields[0]) == "Z", parent: parent, session: session, ticks: ticks}
	err = errors.Join(err, err2, err3)
	if err != nil || len(fields) < 50 {
		return s, err
	}
	status, err := strconv.ParseUint(string(fields[49]), 10, 32)
	s.status = syscall.WaitStatus(status)
	return s, err
}

// exitOfCorpse returns the exit status of a zombie that its parent is about to
// reap; it is not Known after that.
func exitOfCorpse(pid int, ticks uint64) Exit {
	s, err := readStat(pid)
	if err != nil || !s.zombie || s.ticks != ticks {
		return Exit{}
	}
	return exitOf(s.status)
}
