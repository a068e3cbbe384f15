package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"cupola/bench/daemon"
)

// cpuTime is what pid and its children have used so far. It shows the cost of a
// request also where other processes take part of the machine.
func cpuTime(pid int) (sum time.Duration) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, field := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		if process, err := strconv.Atoi(field); err == nil {
			used, _ := daemon.CPUTime(process) // 0 if it has ended meanwhile
			sum += used
		}
	}
	return sum
}
