package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // filters devices on cgroup v2
	"github.com/opencontainers/runc/libcontainer"

	"cupola/runtime/container/starter"
)

// start starts the process and returns its PID.
func start(r starter.Request) (int, error) {
	// On v1, where libcontainer is given no cgroup, the daemon refuses devices.
	cgroups.DevicesSetV1 = nil
	if !r.First {
		if err := addCgroupPaths(filepath.Join(r.States, r.ID, "state.json")); err != nil {
			return 0, err
		}
	}
	if r.First && r.Cgroups > 0 {
		done, err := makeCgroupNamespace(r)
		if err != nil {
			return 0, err
		}
		defer done()
	}
	c, err := libcontainer.Load(r.States, r.ID)
	if err != nil {
		return 0, err
	}
	p := process(r)
	if err := c.Run(p); err != nil {
		return 0, err
	}
	return p.Pid()
}

func process(r starter.Request) *libcontainer.Process {
	p := &libcontainer.Process{
		Init: r.First, Args: r.Process.Args, Env: r.Process.Env, Cwd: r.Process.Cwd,
		UID: r.Process.UID, GID: r.Process.GID, AdditionalGroups: r.Process.Groups,
		Capabilities: r.Process.Capabilities,
		LogLevel:     "3", // warnings
	}
	// A nil file in one of these interfaces would not be a nil interface.
	if r.Stdio[0] {
		p.Stdin = inherited(0)
	}
	if r.Stdio[1] {
		p.Stdout = inherited(1)
	}
	if r.Stdio[2] {
		p.Stderr = inherited(2)
	}
	for n := range r.Files {
		p.ExtraFiles = append(p.ExtraFiles, inherited(len(r.Stdio)+n))
	}
	return p
}

func inherited(n int) *os.File {
	return os.NewFile(uintptr(starter.FirstFile+n), "inherited")
}

// addCgroupPaths writes into the state that libcontainer manages no cgroup,
// which it has left out. Others may do the same meanwhile.
func addCgroupPaths(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if _, ok := state["cgroup_paths"]; ok {
		return nil
	}
	state["cgroup_paths"] = json.RawMessage("{}")
	if data, err = json.Marshal(state); err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "state-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // renamed when all went well
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
