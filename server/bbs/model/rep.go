package model

import (
	"cmp"

	"cupola/runtime/lrp"
)

// State is what a rep says of its cell. The names, of which some are Go's, are
// those of Diego (rep: resources.go).
type State struct {
	RepURL                  string `json:"rep_url"`
	CellID                  string `json:"cell_id"`
	CellIndex               int    `json:"cell_index"`
	RootFSProviders         map[string]any
	AvailableResources      stateResources
	TotalResources          stateResources
	LRPs                    []stateLRP
	Tasks                   []stateTask
	StartingContainerCount  int
	Zone                    string
	Evacuating              bool
	VolumeDrivers           []string
	PlacementTags           []string
	OptionalPlacementTags   []string
	ProxyMemoryAllocationMB int
}

type stateResources struct{ MemoryMB, DiskMB, Containers int }

// stateNeed is what a container needs of a cell.
type stateNeed struct {
	PlacementTags []string
	VolumeDrivers []string
	RootFS        string `json:"RootFs"`
	MemoryMB      int
	DiskMB        int
	MaxPids       int
}

type stateLRP struct {
	InstanceGUID string `json:"instance_guid"`
	ProcessGUID  string `json:"process_guid"`
	Index        int    `json:"index"`
	Domain       string `json:"domain"`
	stateNeed
	State string `json:"state"`
}

type stateTask struct {
	TaskGUID string `json:"TaskGuid"`
	Domain   string
	stateNeed
	State  string `json:"state"`
	Failed bool   `json:"failed"`
}

// CellState is the state of a cell with its containers. names are the GUIDs of
// tasks whose containers have others.
func CellState(c lrp.Cell, index int, repURL string, containers []lrp.ContainerStatus, names map[string]string) State {
	total := stateResources{c.MemoryMB, c.DiskMB, c.Containers}
	s := State{RepURL: repURL, CellID: c.ID, CellIndex: index, RootFSProviders: providers(c), TotalResources: total, AvailableResources: total,
		LRPs: []stateLRP{}, Tasks: []stateTask{}, Zone: c.Zone, Evacuating: c.Leaving,
		VolumeDrivers: list(c.VolumeDrivers), PlacementTags: list(c.RequiredTags), OptionalPlacementTags: list(c.OptionalTags())}
	for _, x := range containers {
		s.AvailableResources.MemoryMB -= x.MemoryMB
		s.AvailableResources.DiskMB -= x.DiskMB
		s.AvailableResources.Containers--
		if x.Phase == lrp.PhaseCreating || x.Phase == lrp.PhaseStarting {
			s.StartingContainerCount++
		}
		need := stateNeed{PlacementTags: list(x.RequiredTags), VolumeDrivers: list(x.VolumeDrivers), RootFS: x.RootFS, MemoryMB: x.MemoryMB, DiskMB: x.DiskMB, MaxPids: x.MaxPids}
		if x.Kind == lrp.KindTask {
			s.Tasks = append(s.Tasks, stateTask{TaskGUID: cmp.Or(names[x.GUID], x.GUID), Domain: x.Domain, stateNeed: need, State: taskState(x), Failed: x.Failed})
			continue
		}
		s.LRPs = append(s.LRPs, stateLRP{InstanceGUID: x.GUID, ProcessGUID: x.ProcessGUID, Index: x.Index, Domain: x.Domain, stateNeed: need, State: lrpState(x)})
	}
	return s
}

// providers are the root filesystems of a cell: a set of names, or any of a
// scheme.
func providers(c lrp.Cell) map[string]any {
	set := map[string]struct{}{}
	for _, name := range c.RootFSes {
		set[name] = struct{}{}
	}
	all := map[string]any{"preloaded": map[string]any{"type": "fixed_set", "set": set}}
	for _, scheme := range c.RootFSProviders {
		all[scheme] = map[string]string{"type": "arbitrary"}
	}
	return all
}

func lrpState(c lrp.ContainerStatus) string {
	switch {
	case c.Phase == lrp.PhaseExited && c.Failed:
		return string(lrp.Crashed)
	case c.Phase == lrp.PhaseExited:
		return "SHUTDOWN"
	case c.Phase == lrp.PhaseRunning || c.Phase == lrp.PhaseStopping:
		return string(lrp.Running)
	}
	return string(lrp.Claimed)
}

func taskState(c lrp.ContainerStatus) string {
	if c.Phase == lrp.PhaseExited {
		return stateName(lrp.TaskCompleted)
	}
	return stateName(lrp.TaskRunning)
}

// list is never nil: Diego's is written as an empty one.
func list(of []string) []string {
	if of == nil {
		return []string{}
	}
	return of
}
