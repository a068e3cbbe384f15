package deployment

import (
	"fmt"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type repairCmd struct {
	boshOne
	Report bool `help:"List the problems; exit with 1 if there are any. This is the default." xor:"how"`
	Auto   bool `help:"Recreate instances that have a problem, without their stop scripts; orphan disks that no instance has." short:"a" xor:"how"`
	JSON   bool `help:"Print the problems as JSON." name:"json"`
}

// Run lists what is wrong with a deployment, and mends it if asked to.
func (c *repairCmd) Run(e *command.Env) error {
	type problem struct {
		Type        string `json:"type"`
		Resource    string `json:"resource"`
		Description string `json:"description"`
		Resolution  string `json:"resolution"`
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	var all []problem
	if err := api.Call(e.Ctx, "GET", c.path()+"/problems", nil, &all); err != nil {
		return err
	}
	switch {
	case c.JSON:
		err = command.WriteJSON(e.Out, all)
	case len(all) == 0:
		_, err = fmt.Fprintln(e.Out, "No problems found.")
	default:
		t := &command.Table{Width: command.Width(e)}
		t.Add("RESOURCE", "TYPE", "REPAIR", "DESCRIPTION")
		for _, p := range all {
			t.Add(p.Resource, p.Type, p.Resolution, oneLine(p.Description))
		}
		err = t.Write(e.Out)
	}
	if err != nil || len(all) == 0 {
		return err
	}
	if !c.Auto {
		return command.ExitCode(1)
	}
	return ask(e, api, c.Deployment, capi.Doc{"kind": "recreate", "repair": true})
}
