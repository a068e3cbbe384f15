package databroker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRedisDumpsTwice dumps from a server that refuses the first snapshots, since it has just made another.
func TestRedisDumpsTwice(t *testing.T) {
	dir := t.TempDir()
	client := filepath.Join(dir, "redis-cli")
	server := `#!/bin/sh
case "$*" in
*BGSAVE*)
  echo asked >> asked
  if [ "$(wc -l < asked)" -lt 3 ]; then echo "ERR Background save already in progress"; exit; fi
  echo snapshot > dump.rdb; echo "Background saving started" ;;
*INFO*) echo rdb_bgsave_in_progress:0 ;;
esac
`
	if err := os.WriteFile(client, []byte(server), 0o700); err != nil {
		t.Fatal(err)
	}
	program := strings.ReplaceAll(redis{}.dump(), "cd "+data+"/redis", "cd "+dir)
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", program)
	c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), redisSecret+"=x")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil || string(out) != "snapshot\n" {
		t.Errorf("got %q, %v, %s; want the snapshot", out, err, &said)
	}
	if _, err := os.Stat(filepath.Join(dir, "dump.rdb")); !os.IsNotExist(err) {
		t.Errorf("got %v; want the snapshot gone", err)
	}
}
