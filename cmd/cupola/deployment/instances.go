package deployment

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type instancesCmd struct {
	capi.Flags
	Deployment string `arg:"" optional:"" help:"The deployment; all by default."`
	Processes  bool   `help:"List each instance's processes, too." short:"p" aliases:"ps"`
	Details    bool   `help:"Show GUIDs, indices, persistent disks, and which instance is the bootstrap one." short:"i"`
	Vitals     bool   `help:"Show what they use: CPU, memory, and the disks of their containers."`
	Failing    bool   `help:"List only instances, and with --ps processes, that are failing." short:"f"`
	JSON       bool   `help:"Print JSON." name:"json"`
}

// Run lists the instances of a deployment, or of all.
func (c *instancesCmd) Run(e *command.Env) error {
	all, err := instancesOfAll(e, &c.Flags, c.Deployment, c.Vitals)
	if err != nil {
		return err
	}
	if c.Failing {
		all = slices.DeleteFunc(all, func(i ofDeployment) bool { return !i.failing() })
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	t := &command.Table{Width: command.Width(e)}
	t.Add(c.cells("DEPLOYMENT", []string{"INSTANCE", "STATE", "AZ", "ADDRESS", "SINCE"}, []string{"GUID", "INDEX", "BOOTSTRAP", "DISK"}, []string{"UPTIME", "CPU", "MEMORY", "DISK USE"}, "NOTE")...)
	for _, i := range all {
		details := []string{i.GUID, strconv.Itoa(i.Index), strconv.FormatBool(i.Index == 0), orDash(i.Disk)}
		t.Add(c.cells(i.Deployment, []string{i.name(), i.State, orDash(i.AZ), orDash(i.Address), command.When(i.Since)}, details, i.vitals(), i.note())...)
		for _, p := range i.Processes {
			if c.Processes && !(c.Failing && p.State == "running" && p.Ready) {
				t.Add(c.cells("", []string{"  " + p.Name, processState(p.State, p.Ready, p.Role), "", "", ""}, make([]string, 4), p.vitals(), oneLine(p.Details))...)
			}
		}
	}
	return t.Write(e.Out)
}

// ofDeployment is an instance with the name of its deployment.
type ofDeployment struct {
	Deployment string `json:"deployment"`
	boshInstanceView
}

// instancesOfAll lists the instances of a deployment; "" is all.
func instancesOfAll(e *command.Env, f *capi.Flags, deployment string, vitals bool) ([]ofDeployment, error) {
	api, err := f.Login(e.Ctx)
	if err != nil {
		return nil, err
	}
	deployments := []boshView{{Name: deployment}}
	if deployment == "" {
		if err := api.Call(e.Ctx, "GET", "/v1/deployments", nil, &deployments); err != nil {
			return nil, err
		}
	}
	all := []ofDeployment{}
	for _, d := range deployments {
		var instances []boshInstanceView
		if err := api.Call(e.Ctx, "GET", "/v1/deployments/"+url.PathEscape(d.Name)+"/instances?vitals="+strconv.FormatBool(vitals), nil, &instances); err != nil {
			return nil, err
		}
		for _, i := range instances {
			all = append(all, ofDeployment{d.Name, i})
		}
	}
	return all, nil
}

// cells are those of a row. Of one deployment, its name is left out.
func (c *instancesCmd) cells(deployment string, usual, details, vitals []string, note string) []string {
	if c.Details {
		usual = append(usual, details...)
	}
	if c.Deployment == "" {
		usual = append([]string{deployment}, usual...)
	}
	return vitalCells(c.Vitals, usual, vitals, note)
}

// note describes an instance besides its state.
func (i boshInstanceView) note() string {
	switch {
	case i.Failure != "":
		return strings.ReplaceAll(i.Failure, "\n", " ")
	case i.Lifecycle != "service":
		return i.Lifecycle
	case !i.UpToDate:
		return "an update is outstanding"
	}
	return ""
}

func processState(state string, ready bool, role string) string {
	switch {
	case state == "running" && !ready:
		return "not ready"
	case state == "running" && role != "":
		return role
	}
	return state
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
