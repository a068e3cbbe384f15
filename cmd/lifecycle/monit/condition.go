package monit

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/runtime/contract"
)

// holds says why a condition holds for a process and its children; nil if it does not.
func holds(c contract.MonitCondition, pid int) error {
	if c.Memory > 0 {
		if used := memory(pid); used > c.Memory {
			return fmt.Errorf("it uses %d MB of memory (%s)", used>>20, c.Text)
		}
		return nil
	}
	if err := answers(c); err != nil {
		return fmt.Errorf("%w (%s)", err, c.Text)
	}
	return nil
}

// memory returns the bytes of a process and of its children, shared ones as often as they are shared: as monit counts. Of 0 it
// returns those of all processes that this one sees, but for its own.
func memory(of int) (bytes uint64) {
	parents, used := map[int]int{}, map[int]uint64{}
	names, _ := filepath.Glob("/proc/[0-9]*/statm")
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		statm, err := os.ReadFile(name)
		stat, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// The name of a process may have any characters. What follows is its state and its parent.
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields := strings.Fields(string(statm)); err == nil && err2 == nil && len(fields) > 1 && len(after) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64)
			parents[pid], _ = strconv.Atoi(after[1])
			used[pid] = pages * uint64(os.Getpagesize())
		}
	}
	for pid, n := range used {
		if of == 0 && pid != os.Getpid() || of != 0 && descends(parents, pid, of) {
			bytes += n
		}
	}
	return bytes
}

// descends reports whether a process is another one, or a descendant of it.
func descends(parents map[int]int, pid, of int) bool {
	for range len(parents) { // PIDs may be reused meanwhile
		if pid == of {
			return true
		}
		pid = parents[pid]
	}
	return false
}

// answers connects to a server.
func answers(c contract.MonitCondition) error {
	host := c.Host
	if host == "" {
		host = "localhost"
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	ctx, cancel := context.WithTimeout(context.Background(), c.Wait)
	defer cancel()
	if c.Path == "" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+c.Path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s%s answers %s", address, c.Path, res.Status)
	}
	return nil
}

// test fails if a condition holds for the container that this runs in.
func test(text string) error {
	var c contract.MonitCondition
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("read a condition: %w", err)
	}
	return holds(c, 0)
}

// fulfilled counts how often in a row conditions of a process hold, runs the programs of those that have held for long enough, and
// says why the process must be restarted; nil if it need not.
func (s *supervisor) fulfilled(c contract.MonitCheck, pid int) (restart error) {
	for n, condition := range c.Conditions {
		key := c.Name + "/" + strconv.Itoa(n)
		err := holds(condition, pid)
		if err == nil {
			delete(s.held, key)
			continue
		}
		if s.held[key]++; s.held[key] < condition.Looks {
			continue
		}
		delete(s.held, key)
		if len(condition.Exec.Args) == 0 {
			restart = err
			continue
		}
		s.say("process %s: %v", c.Name, err)
		if _, err := begin(condition.Exec); err != nil {
			s.say("process %s: %v", c.Name, err)
		}
	}
	return restart
}
