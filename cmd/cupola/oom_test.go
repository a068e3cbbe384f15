package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestMemoryIsTakenFromContainersFirst reads what the kernel goes by when the
// machine's memory is used up: the daemon ends last, containers first.
func TestMemoryIsTakenFromContainersFirst(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	d.running("hello-node", "web", 2)
	score := func(pid string) string {
		t.Helper()
		text, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	// In a container, root may not be permitted to lower it.
	got, own := score(strconv.Itoa(d.cmd.Process.Pid)), score("self")
	if refused := strings.Contains(d.log.String(), "oom_score_adj"); own == "0" && got != "-500" && !refused {
		t.Errorf("the daemon has %s; want -500", got)
	}
	for _, pid := range d.processes(t) {
		if got := score(pid); got != "100" {
			t.Errorf("process %s of a container has %s; want 100", pid, got)
		}
	}
}
