// Package jvm is what a Java app's container runs before its JVM and next to it. The java buildpack puts this program into the droplet,
// under the names of the programs that Cloud Foundry's buildpack has there: one assembles JAVA_OPTS, one calculates the sizes of the
// JVM's memory from the container's limit, one executes the JVM, and one ends it when it runs out of memory.
package jvm

import (
	"fmt"
	"os"
	"syscall"
)

// Names of the programs: of links to this one.
const (
	Calculator = "java-buildpack-memory-calculator"
	Exec       = "javaexec"
	Kill       = "jvmkill"
	Options    = "java-options"
)

// Names returns all names.
func Names() []string { return []string{Calculator, Exec, Kill, Options} }

// Main runs the program that argv[0] names and returns its exit code; ok is false if it names none.
func Main(argv []string) (code int, ok bool) {
	switch args := argv[1:]; argv[0] {
	case Calculator:
		return calculatorMain(args), true
	case Exec:
		return execMain(args), true
	case Kill:
		return killMain(), true
	case Options:
		return optionsMain(args), true
	}
	return 0, false
}

// execMain replaces itself with args[0], the JVM. It puts the words of JAVA_OPTS before the other arguments; no shell reads them, so
// that nothing in them is executed or expanded (java-buildpack: src/java/javaexec).
func execMain(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: javaexec JAVA ARGUMENT…")
		return 2
	}
	argv := append([]string{args[0]}, Words(os.Getenv("JAVA_OPTS"))...)
	err := syscall.Exec(args[0], append(argv, args[1:]...), os.Environ())
	fmt.Fprintf(os.Stderr, "javaexec: start %s: %v\n", args[0], err)
	return 127
}
