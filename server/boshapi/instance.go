package boshapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bosh/director"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// instanceInfo is a line of format=full.
type instanceInfo struct {
	AgentID            string    `json:"agent_id"`
	VMCID              string    `json:"vm_cid"`
	VMCreatedAt        string    `json:"vm_created_at"`
	VMType             string    `json:"vm_type"`
	JobName            string    `json:"job_name"`
	ID                 string    `json:"id"`
	Index              int       `json:"index"`
	JobState           string    `json:"job_state"`
	State              string    `json:"state"`
	AZ                 string    `json:"az"`
	IPs                []string  `json:"ips"`
	DNS                []string  `json:"dns"`
	Bootstrap          bool      `json:"bootstrap"`
	Active             bool      `json:"active"`
	Ignore             bool      `json:"ignore"`
	ResurrectionPaused bool      `json:"resurrection_paused"`
	DiskCID            string    `json:"disk_cid"`
	DiskCIDs           []string  `json:"disk_cids"`
	Processes          []process `json:"processes"`
	Vitals             *vitals   `json:"vitals,omitempty"`
}

type process struct {
	Name   string  `json:"name"`
	State  string  `json:"state"`
	Uptime *uptime `json:"uptime,omitempty"`
	Mem    *memory `json:"mem,omitempty"`
	CPU    *cpu    `json:"cpu,omitempty"`
}

type uptime struct {
	Seconds uint64 `json:"secs"`
}

type memory struct {
	KB uint64 `json:"kb"`
}

type cpu struct {
	Total float64 `json:"total"`
}

// vitals are those of an instance: the sums of its containers.
type vitals struct {
	CPU struct {
		User string `json:"user"`
	} `json:"cpu"`
	Mem struct {
		KB string `json:"kb"`
	} `json:"mem"`
	Uptime uptime `json:"uptime"`
}

// listVMs lists the instances of a deployment that have containers.
func listVMs(c *call) (*answer, error) { return listInfos(c, true) }

// listInstances lists all instances of a deployment.
func listInstances(c *call) (*answer, error) { return listInfos(c, false) }

// listInfos lists instances: with format=full as the result of a task, with what their
// processes use.
func listInfos(c *call, running bool) (*answer, error) {
	d, err := c.listed()
	if err != nil {
		return nil, err
	}
	all, err := director.Observe(c.tx, d)
	if err != nil {
		return nil, err
	}
	if running {
		all = slices.DeleteFunc(all, func(o director.Observed) bool { return len(o.Actuals) == 0 })
	}
	if c.query("format") == "full" {
		return c.fullInfos(d, all)
	}
	short := []doc{}
	for _, o := range all {
		short = append(short, doc{"agent_id": o.GUID, "cid": vmOf(o), "id": o.GUID, "job": o.Group, "index": o.Index, "az": o.AZ, "ips": addressesOf(o), "expects_vm": o.Goal != cf.BOSHHalted})
	}
	return ok(short)
}

// fullInfos records a task whose result has a line for each instance.
func (c *call) fullInfos(d *cf.BOSHDeployment, all []director.Observed) (*answer, error) {
	var out bytes.Buffer
	encoder, types := json.NewEncoder(&out), vmTypes(d)
	for _, o := range all {
		i := c.info(o)
		i.VMType = types[o.Group]
		if err := encoder.Encode(i); err != nil {
			return nil, err
		}
	}
	return c.ended(director.Ended{Deployment: d.Name, Kind: director.ListVMs, Output: out.String()})
}

// vmTypes are the VM types of a deployment's groups, by the groups' names.
func vmTypes(d *cf.BOSHDeployment) map[string]string {
	m, _ := manifest.Parse(d.Manifest) // what can be read of it
	types := map[string]string{}
	for _, g := range m.InstanceGroups {
		types[g.Name] = g.VMType
	}
	return types
}

func (c *call) info(o director.Observed) instanceInfo {
	i := instanceInfo{AgentID: o.GUID, VMCID: vmOf(o), JobName: o.Group, ID: o.GUID, Index: o.Index, JobState: jobState(o), State: stateOf(o), AZ: o.AZ, IPs: addressesOf(o),
		DNS: []string{}, Bootstrap: o.Index == 0, Active: true, DiskCID: o.DiskGUID, DiskCIDs: []string{}, Processes: []process{}}
	if o.DiskGUID != "" {
		i.DiskCIDs = append(i.DiskCIDs, o.DiskGUID)
	}
	if len(o.Actuals) > 0 {
		i.VMCreatedAt = o.Since.UTC().Format(time.RFC3339)
		i.Vitals = &vitals{}
	}
	var percent float64
	var bytes uint64
	for _, a := range o.Actuals {
		p := process{Name: a.Owner.Part, State: processState(a.Routable(), string(a.State))}
		if a.InstanceGUID != "" && c.Stats != nil {
			if s, found := c.Stats(a.InstanceGUID); found {
				secs := uint64(s.Uptime.Seconds())
				p.Uptime, p.Mem, p.CPU = &uptime{secs}, &memory{s.MemoryBytes >> 10}, &cpu{s.CPUPercent}
				percent, bytes, i.Vitals.Uptime.Seconds = percent+s.CPUPercent, bytes+s.MemoryBytes, max(i.Vitals.Uptime.Seconds, secs)
			}
		}
		i.Processes = append(i.Processes, p)
	}
	if i.Vitals != nil {
		i.Vitals.CPU.User, i.Vitals.Mem.KB = fmt.Sprintf("%.1f", percent), strconv.FormatUint(bytes>>10, 10)
	}
	return i
}

// vmOf is the name of what the director takes for a VM: the instance's containers.
func vmOf(o director.Observed) string {
	if len(o.Actuals) == 0 {
		return ""
	}
	return "vm-" + o.GUID
}

func addressesOf(o director.Observed) []string {
	if o.Address == "" {
		return []string{}
	}
	return []string{o.Address}
}

// jobState is the director's word for how an instance is.
func jobState(o director.Observed) string {
	if o.State == "failing" && !slices.ContainsFunc(o.Actuals, func(a *lrp.Actual) bool { return a.State == lrp.Running }) {
		return "unresponsive agent"
	}
	return o.State
}

// stateOf is the director's word for an instance's desired state.
func stateOf(o director.Observed) string {
	if o.Goal == cf.BOSHHalted {
		return "stopped"
	}
	return "started"
}

func processState(ready bool, state string) string {
	if ready {
		return "running"
	}
	return strings.ToLower(state)
}

// listErrands lists the names that can be run.
func listErrands(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	names, err := director.Errands(c.tx, d)
	all := []doc{}
	for _, name := range names {
		all = append(all, doc{"name": name})
	}
	return &answer{body: all}, err
}

// runErrand runs an errand on all of its instances, or on one group or instance.
func runErrand(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	var req struct {
		KeepAlive   bool `json:"keep-alive"`
		WhenChanged bool `json:"when-changed"`
		Instances   []struct{ Group, ID string }
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	o := director.Order{Errand: c.param("errand"), KeepAlive: req.KeepAlive, WhenChanged: req.WhenChanged}
	switch {
	case len(req.Instances) > 1:
		return nil, refuse("cupola runs an errand on one instance group or instance, or on all: give --instance once")
	case len(req.Instances) == 1:
		if o.Group, o.Index, err = c.named(d, req.Instances[0].Group, req.Instances[0].ID); err != nil {
			return nil, err
		}
	}
	return c.ask(d.Name, director.RunErrand, o)
}

// named returns the group and index of what the CLI names: a group, or an instance by its
// index or GUID. "" and "*" stand for all.
func (c *call) named(d *cf.BOSHDeployment, group, id string) (string, *int, error) {
	if group == "*" {
		group = ""
	}
	if id == "*" || id == "" || group == "" {
		return group, nil, nil
	}
	if n, err := strconv.Atoi(id); err == nil && n >= 0 {
		return group, &n, nil
	}
	rows, err := store.BOSHInstances.By(c.tx, "deployment_guids", d.GUID)
	if err != nil {
		return "", nil, err
	}
	for _, r := range rows {
		if r.Group == group && r.GUID == id {
			return group, &r.Index, nil
		}
	}
	return "", nil, &refusal{404, 70001, fmt.Sprintf("'%s/%s' doesn't exist", group, id)}
}

// changeState starts, stops, restarts or recreates instances.
func changeState(c *call) (*answer, error) {
	kinds := map[string]director.Kind{"started": director.Start, "stopped": director.Stop, "detached": director.Stop, "restart": director.Restart, "recreate": director.Recreate}
	state := c.query("state")
	return c.change(kinds[state], state == "detached")
}

// actOn is changeState for one instance, as the CLI asks for it with --no-converge.
func actOn(c *call) (*answer, error) {
	kinds := map[string]director.Kind{"start": director.Start, "stop": director.Stop, "restart": director.Restart, "recreate": director.Recreate}
	return c.change(kinds[c.param("action")], c.flag("hard"))
}

func (c *call) change(kind director.Kind, hard bool) (*answer, error) {
	if kind == "" {
		return nil, &refusal{400, 140008, "Unknown state: give started, stopped, detached, restart or recreate"}
	}
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	o, err := c.rollout()
	if err != nil {
		return nil, err
	}
	o.Hard, o.Fix = hard, kind == director.Recreate && (o.Fix || c.flag("ignore_unresponsive_agent"))
	o.SkipDrain = o.SkipDrain && kind != director.Start
	if err := c.createdBefore(&o, kind == director.Recreate, "state=recreate"); err != nil {
		return nil, err
	}
	if o.Group, o.Index, err = c.named(d, c.param("group"), c.param("id")); err != nil {
		return nil, err
	}
	if c.flag("dry_run") {
		return c.tryRecreate(d, kind, o)
	}
	return c.ask(d.Name, kind, o)
}

// tryRecreate is a task that has ended, with the instances that an order would recreate.
func (c *call) tryRecreate(d *cf.BOSHDeployment, kind director.Kind, o director.Order) (*answer, error) {
	if kind != director.Recreate {
		return nil, refuse("cupola has dry runs of deploy and recreate alone: leave out this flag")
	}
	rows, err := store.BOSHInstances.By(c.tx, "deployment_guids", d.GUID)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rows {
		if o.Recreates(r) {
			names = append(names, fmt.Sprintf("%s/%d (%s)", r.Group, r.Index, r.GUID))
		}
	}
	return c.ended(director.Ended{Deployment: d.Name, Kind: director.DryRun, Result: "/deployments/" + d.Name, Events: events("Would recreate", names...)})
}

// createdBefore takes the time before which instances must have been made to be recreated.
func (c *call) createdBefore(o *director.Order, recreates bool, want string) error {
	const invalidValue = 40005 // ValidationInvalidValue
	text := c.query("recreate_vms_created_before")
	if text == "" {
		return nil
	}
	if !recreates {
		return &refusal{400, invalidValue, "Must pass " + want + " when specifying recreate_vms_created_before"}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return &refusal{400, invalidValue, "Invalid RFC 3339 timestamp for recreate_vms_created_before: " + text}
	}
	o.CreatedBefore = at
	return nil
}

// listVariables lists the names of a deployment's values.
func listVariables(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	rows, err := store.BOSHVariables.Matching(c.tx, store.Query{Where: map[string][]string{"deployment_guids": {d.GUID}}, Order: "name"})
	all := []doc{}
	for _, v := range rows {
		all = append(all, doc{"id": v.GUID, "name": v.Name})
	}
	return &answer{body: all}, err
}
