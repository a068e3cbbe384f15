package daemon

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Status reads fields of /proc/PID/status; those of memory are in KiB.
func Status(pid int, fields ...string) ([]int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := make([]int, len(fields))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		for i, want := range fields {
			if name == want {
				values[i], err = strconv.Atoi(strings.Fields(value)[0])
			}
		}
	}
	return values, err
}

// CPUTime is what the process has used, to the tick of 10 ms.
func CPUTime(pid int) (time.Duration, error) { return ticks(pid, 2) }

// FamilyTime is CPUTime with that of the process's children that have ended.
func FamilyTime(pid int) (time.Duration, error) { return ticks(pid, 4) }

// ticks sums the first count of four times in /proc/PID/stat: user and system time of the
// process, then of its children that have ended.
func ticks(pid, count int) (sum time.Duration, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(data), ") ")
	for _, field := range strings.Fields(after)[11 : 11+count] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100
	}
	return sum, nil
}

// Available is the machine's memory that is free or can be, in KiB.
func Available() (int, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(data), "MemAvailable:")
	return strconv.Atoi(strings.Fields(after)[0])
}
