package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/runc/libcontainer/configs"
)

// record is what a later Engine needs of libcontainer's state file.
type record struct {
	PID        int    `json:"init_process_pid"`
	StartTicks uint64 `json:"init_process_start"`
	Config     struct {
		UIDMappings []configs.IDMap `json:"uid_mappings"`
	} `json:"config"`
	// waiting says that the init never got the order to execute its process.
	waiting bool
}

// root is the user of the host that is root in the container.
func (r record) root() uint32 {
	for _, m := range r.Config.UIDMappings {
		if m.ContainerID == 0 {
			return uint32(m.HostID)
		}
	}
	return 0 // every state that we wrote has one
}

// newState is libcontainer's state of a container. That it has no cgroup paths
// keeps libcontainer from moving processes itself: on v1 they enrol themselves, on
// v2 it finds the one path in the configuration. Without a process it is one that
// libcontainer is yet to start.
type newState struct {
	ID             string                           `json:"id"`
	Config         *configs.Config                  `json:"config"`
	Created        time.Time                        `json:"created"`
	PID            int                              `json:"init_process_pid,omitempty"`
	StartTicks     uint64                           `json:"init_process_start,omitempty"`
	CgroupPaths    map[string]string                `json:"cgroup_paths"`
	NamespacePaths map[configs.NamespaceType]string `json:"namespace_paths,omitempty"`
}

// begun is the state once the process p is the container's first.
func (s newState) begun(p *process) newState {
	s.PID, s.StartTicks, s.NamespacePaths = p.pid, p.ticks, map[configs.NamespaceType]string{}
	for _, ns := range s.Config.Namespaces {
		s.NamespacePaths[ns.Type] = ns.GetPath(p.pid)
	}
	return s
}

// writeState writes the state file from which libcontainer loads a container.
func writeState(dir string, s newState) error {
	s.Created, s.CgroupPaths = time.Now().UTC(), map[string]string{}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	path := filepath.Join(dir, "state.json")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readState reads what was recorded; a directory without a state file is a
// container that has had no effect yet.
func readState(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(dir)
		return r, err
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read state of container %s: %w", filepath.Base(dir), err)
	}
	// The FIFO is removed once the init has passed it and executes the process.
	_, err = os.Stat(filepath.Join(dir, "exec.fifo"))
	r.waiting = err == nil
	return r, nil
}

func sortedStates(states map[string]State) []State {
	var all []State
	for _, id := range slices.Sorted(maps.Keys(states)) {
		all = append(all, states[id])
	}
	return all
}
