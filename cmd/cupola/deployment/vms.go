package deployment

import (
	"fmt"
	"slices"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type vmsCmd struct {
	capi.Flags
	Deployment string `arg:"" optional:"" help:"The deployment; all by default."`
	Vitals     bool   `help:"Show what they use: CPU, memory, and the disks of their containers."`
	JSON       bool   `help:"Print JSON." name:"json"`
}

// Run lists the instances that have containers, as BOSH has a VM for each.
func (c *vmsCmd) Run(e *command.Env) error {
	all, err := instancesOfAll(e, &c.Flags, c.Deployment, c.Vitals)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i ofDeployment) bool { return len(i.Processes) == 0 })
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	t := &command.Table{Width: command.Width(e)}
	t.Add(vitalCells(c.Vitals, []string{"INSTANCE", "STATE", "AZ", "ADDRESS"}, []string{"UPTIME", "CPU", "MEMORY", "DISK"}, "DEPLOYMENT")...)
	for _, v := range all {
		t.Add(vitalCells(c.Vitals, []string{v.name() + " (" + v.GUID + ")", v.State, orDash(v.AZ), orDash(v.Address)}, v.vitals(), v.Deployment)...)
	}
	return t.Write(e.Out)
}

func vitalCells(shown bool, usual, vitals []string, last string) []string {
	if shown {
		usual = append(usual, vitals...)
	}
	return append(usual, last)
}

// vitals are what all processes of an instance use: how long the oldest runs, CPU, memory
// and the disks of containers.
func (i boshInstanceView) vitals() []string {
	var sum processView
	for _, p := range i.Processes {
		sum.Uptime = max(sum.Uptime, p.Uptime)
		sum.CPU += p.CPU
		sum.Memory += p.Memory
		sum.Disk += p.Disk
	}
	return sum.vitals()
}

func (p processView) vitals() []string {
	return []string{(time.Duration(p.Uptime) * time.Second).String(), fmt.Sprintf("%.1f%%", p.CPU), command.BytesText(p.Memory), command.BytesText(p.Disk)}
}
