// Command app is what the measured containers run: it writes a line and ends,
// or with an argument waits until it is killed.
package main

import (
	"os"
	"syscall"
)

func main() {
	_, _ = os.Stdout.WriteString("x\n")
	for len(os.Args) > 1 {
		_ = syscall.Pause()
	}
}
