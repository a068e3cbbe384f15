package cell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// record is what container.json says: all that adopting a container takes, and
// nothing that is secret.
type record struct {
	Container lrp.Container // without what stripped removes
	Plan      flat          // without commands
	Boot      string        // of the machine when the container was started
	Phase     lrp.Phase
	Address   string
	StartedAt time.Time // zero: it was never started
	User      login     // of the action
	Ready     bool
	Sidecars  []sidecarRecord
	Ending    *ending // once the action has ended
	Collected bool    // results were read, outputs kept
	Told      bool    // the end was told: only clearing away is left
	Result    []byte
	Outputs   []lrp.Blob
}

// sidecarRecord names one process for good.
type sidecarRecord struct {
	PID        int
	StartTicks uint64
}

// ending is how and why a container ended.
type ending struct {
	Exit    container.Exit
	Stopped bool     // Stop was called
	Killed  bool     // it did not end within the grace time
	Reasons []string // why the cell ended it, in Diego's words
}

const recordFile = "container.json"

// stripped is c without environment, files and commands.
func stripped(c lrp.Container) lrp.Container {
	c.Env, c.Files, c.Layers, c.CachedDependencies = nil, nil, nil, nil
	c.Setup, c.Action, c.Monitor, c.Sidecars = lrp.Action{}, lrp.Action{}, lrp.Action{}, nil
	c.ImageUsername, c.ImagePassword = "", ""
	return c
}

func (f flat) stripped() flat {
	sidecars := make([]lrp.Run, len(f.Sidecars))
	for n, s := range f.Sidecars {
		sidecars[n].LogSource = s.LogSource
	}
	return flat{Sidecars: sidecars, Outputs: f.Outputs, Timeout: f.Timeout}
}

// writeRecord replaces the record in dir. A killed daemon leaves the old one or
// the new one. It is not synced: a machine that loses power loses the
// containers as well.
func writeRecord(dir string, r record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode container record: %w", err)
	}
	temp := filepath.Join(dir, recordFile+".new")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return fmt.Errorf("write container record: %w", err)
	}
	return os.Rename(temp, filepath.Join(dir, recordFile))
}

func readRecord(dir string) (record, error) {
	var r record
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// bootID names the time since the machine came up; "" where the kernel does
// not tell.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
