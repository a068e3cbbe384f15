package jvm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// envTarget tells the second jvmkill which process it ends.
const envTarget = "JVMKILL_TARGET"

// reportTime bounds the report of a JVM that no longer answers.
const reportTime = 10 * time.Second

// histogramLines is how many classes the report names (jvmkill: the first 100).
const histogramLines = 100

// killMain is what -XX:OnOutOfMemoryError runs. The JVM waits for it and answers no requests meanwhile: so it starts a second jvmkill and
// returns. That one asks the JVM for a histogram of its heap and prints it, and kills the JVM.
func killMain() int {
	if target, err := strconv.Atoi(os.Getenv(envTarget)); err == nil {
		end(target, os.Stdout)
		return 0
	}
	target, err := parentJVM("/proc", os.Getppid())
	if err != nil {
		fmt.Fprintln(os.Stderr, "jvmkill:", err)
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jvmkill:", err)
		return 1
	}
	// It outlives this process, and ends with its report.
	second := exec.CommandContext(context.Background(), self)
	second.Args = []string{Kill}
	second.Env = append(os.Environ(), envTarget+"="+strconv.Itoa(target))
	second.Stdout, second.Stderr = os.Stdout, os.Stderr
	second.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := second.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "jvmkill:", err)
		return 1
	}
	return 0
}

// parentJVM returns the JVM that runs this program: its parent, or the parent of a shell between them.
func parentJVM(proc string, pid int) (int, error) {
	for range 3 {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil && filepath.Base(exe) == "java" {
			return pid, nil
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			break
		}
		// The name, in parentheses, may contain spaces.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 {
			break
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid <= 1 {
			break
		}
	}
	return 0, errors.New("no JVM among the processes that started it")
}

// end reports what fills a JVM's memory, and kills it.
func end(pid int, w io.Writer) {
	fmt.Fprintln(w, "Resource exhaustion event: the JVM was unable to allocate memory from the heap.\nResourceExhausted! (1/0)")
	deadline := time.Now().Add(reportTime)
	if histogram, err := attach(pid, deadline, "inspectheap", "-all"); err == nil {
		writeHistogram(w, histogram)
	} else {
		fmt.Fprintln(w, "No histogram of the heap: the JVM has ended, or does not answer:", err)
	}
	if usage, err := attach(pid, deadline, "jcmd", "GC.heap_info"); err == nil {
		fmt.Fprintln(w, "Memory usage:\n"+strings.TrimRight(usage, "\n"))
	}
	fmt.Fprintln(w, "jvmkill killing current process")
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// attach sends a command to the listener that the JVM has for tools such as jcmd (HotSpot: attachListener_posix.cpp), and returns the
// answer. -XX:+StartAttachListener made the listener at the JVM's start, when there was memory for it.
func attach(pid int, deadline time.Time, command, argument string) (string, error) {
	conn, err := (&net.Dialer{Deadline: deadline}).DialContext(context.Background(), "unix", fmt.Sprintf("/tmp/.java_pid%d", pid))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	// Version 1 of the protocol: always three arguments, each ended by a zero.
	if _, err := fmt.Fprintf(conn, "1\x00%s\x00%s\x00\x00\x00", command, argument); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 16<<20))
	if err != nil {
		return "", err
	}
	code, rest, _ := strings.Cut(string(answer), "\n")
	if code != "0" {
		return "", fmt.Errorf("the JVM answers %s: %s", code, strings.TrimSpace(rest))
	}
	return rest, nil
}

// writeHistogram prints the first lines of the JVM's histogram as jvmkill does. A line of it is `rank: instances bytes class`.
func writeHistogram(w io.Writer, histogram string) {
	type row struct{ instances, bytes, class string }
	rows := []row{{"Instance Count", "Total Bytes", "Class Name"}}
	widths := [3]int{}
	for s := bufio.NewScanner(strings.NewReader(histogram)); s.Scan() && len(rows) <= histogramLines; {
		if f := strings.Fields(s.Text()); len(f) >= 4 && strings.HasSuffix(f[0], ":") {
			rows = append(rows, row{f[1], f[2], f[3]})
		}
	}
	for _, r := range rows {
		widths = [3]int{max(widths[0], len(r.instances)), max(widths[1], len(r.bytes)), max(widths[2], len(r.class))}
	}
	for _, r := range rows {
		fmt.Fprintf(w, "| %-*s | %-*s | %-*s |\n", widths[0], r.instances, widths[1], r.bytes, widths[2], r.class)
	}
}
