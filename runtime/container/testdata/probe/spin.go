package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// spin uses the first processor that the process may run on, as long as it lives.
func spin() {
	runtime.LockOSThread()
	var may, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		panic(err)
	}
	n := 0
	for !may.IsSet(n) {
		n++
	}
	first.Set(n)
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		panic(err)
	}
	for { //nolint:revive // it spins
	}
}
