package push

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestMemoryIsTakenFromContainersFirst reads the scores that the kernel uses when the
// machine's memory is used up: the daemon ends last, containers first.
func TestMemoryIsTakenFromContainersFirst(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	d.Running("hello-node", "web", 2)
	score := func(pid string) string {
		t.Helper()
		text, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	// In a container, root may not be permitted to lower it.
	got, own := score(strconv.Itoa(d.Cmd.Process.Pid)), score("self")
	if refused := strings.Contains(d.Log.String(), "oom_score_adj"); own == "0" && got != "-500" && !refused {
		t.Errorf("the daemon has %s; want -500", got)
	}
	for _, pid := range d.Processes(t) {
		if got := score(pid); got != "100" {
			t.Errorf("process %s of a container has %s; want 100", pid, got)
		}
	}
}
