package cells

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// PoolsCmd is cupola placement-pools.
type PoolsCmd struct {
	List     poolListCmd     `cmd:"" aliases:"ls" help:"List the placement pools."`
	Create   poolCreateCmd   `cmd:"" help:"Create a placement pool: the tags that cells must and must not have."`
	Update   poolUpdateCmd   `cmd:"" help:"Update a placement pool. It takes effect when apps restart."`
	Delete   poolDeleteCmd   `cmd:"" aliases:"rm" help:"Delete a placement pool; its spaces use the default one."`
	Assign   poolAssignCmd   `cmd:"" help:"Assign a placement pool to a space."`
	Unassign poolUnassignCmd `cmd:"" help:"Let a space use the default placement pool."`
}

// poolView is a placement pool as the API shows it.
type poolView struct {
	GUID          string   `json:"guid"`
	Name          string   `json:"name"`
	Require       []string `json:"require"`
	Disallow      []string `json:"disallow"`
	Default       bool     `json:"default"`
	Relationships struct {
		Spaces struct {
			Data []struct {
				GUID string `json:"guid"`
			} `json:"data"`
		} `json:"spaces"`
	} `json:"relationships"`
}

type poolListCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the pools.
func (c *poolListCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	var list struct{ Resources []poolView }
	if err := api.Call(e.Ctx, "GET", "/v3/placement_pools?per_page=5000&order_by=name", nil, &list); err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, list.Resources)
	}
	spaces, err := spaceNames(e, api)
	if err != nil {
		return err
	}
	return writePools(e.Out, list.Resources, spaces)
}

// spaceNames are "org/space" by the space's GUID.
func spaceNames(e *command.Env, api *capi.Client) (map[string]string, error) {
	var list struct {
		Resources []struct {
			GUID, Name    string
			Relationships struct {
				Organization struct{ Data struct{ GUID string } }
			}
		}
		Included struct {
			Organizations []struct{ GUID, Name string }
		}
	}
	if err := api.Call(e.Ctx, "GET", "/v3/spaces?per_page=5000&include=organization", nil, &list); err != nil {
		return nil, err
	}
	orgs, names := map[string]string{}, map[string]string{}
	for _, o := range list.Included.Organizations {
		orgs[o.GUID] = o.Name
	}
	for _, s := range list.Resources {
		names[s.GUID] = orgs[s.Relationships.Organization.Data.GUID] + "/" + s.Name
	}
	return names, nil
}

func writePools(w io.Writer, pools []poolView, names map[string]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tREQUIRE\tDISALLOW\tSPACES")
	for _, p := range pools {
		var spaces []string
		if p.Default {
			spaces = append(spaces, "all others (default)")
		}
		for _, s := range p.Relationships.Spaces.Data {
			spaces = append(spaces, names[s.GUID])
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, listText(p.Require), listText(p.Disallow), listText(spaces))
	}
	return t.Flush()
}

// poolFlags are what a pool says; what is not given is left as it is.
type poolFlags struct {
	Require  []string `help:"Tags that cells must have." placeholder:"TAG"`
	Disallow []string `help:"Tags that cells must not have." placeholder:"TAG"`
	Default  *bool    `help:"Make it the default, for spaces that have no pool." negatable:""`
}

func (f poolFlags) body() capi.Doc {
	body := capi.Doc{}
	if f.Require != nil {
		body["require"] = f.Require
	}
	if f.Disallow != nil {
		body["disallow"] = f.Disallow
	}
	if f.Default != nil {
		body["default"] = *f.Default
	}
	return body
}

type poolCreateCmd struct {
	capi.Flags
	poolFlags
	Name string `arg:"" help:"The pool's name."`
}

// Run makes a pool.
func (c *poolCreateCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	body := c.body()
	body["name"] = c.Name
	if err := api.Call(e.Ctx, "POST", "/v3/placement_pools", body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Created placement pool %s.\n", c.Name)
	return err
}

// poolArg names a pool.
type poolArg struct {
	capi.Flags
	Pool string `arg:"" help:"The pool's name."`
}

// open logs in and finds the pool.
func (a *poolArg) open(e *command.Env) (api *capi.Client, path string, err error) {
	if api, err = a.Login(e.Ctx); err != nil {
		return nil, "", err
	}
	guid, err := api.First(e.Ctx, "placement pool "+a.Pool, "/v3/placement_pools?names="+url.QueryEscape(a.Pool))
	return api, "/v3/placement_pools/" + guid, err
}

type poolUpdateCmd struct {
	poolArg
	poolFlags
	Rename string `help:"The new name." placeholder:"NAME"`
	Any    bool   `help:"Remove all earlier required and disallowed tags."`
}

// Run changes a pool.
func (c *poolUpdateCmd) Run(e *command.Env) error {
	body := c.body()
	if len(body) == 0 && c.Rename == "" && !c.Any {
		return errors.New("nothing to update: give --require, --disallow, --default, --rename or --any")
	}
	api, path, err := c.open(e)
	if err != nil {
		return err
	}
	if c.Rename != "" {
		body["name"] = c.Rename
	}
	for _, field := range []string{"require", "disallow"} {
		if _, given := body[field]; c.Any && !given {
			body[field] = []string{}
		}
	}
	if err := api.Call(e.Ctx, "PATCH", path, body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Updated placement pool %s. Restart the apps of its spaces for it to take effect.\n", c.Pool)
	return err
}

type poolDeleteCmd struct{ poolArg }

// Run deletes a pool.
func (c *poolDeleteCmd) Run(e *command.Env) error {
	api, path, err := c.open(e)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Deleted placement pool %s.\n", c.Pool)
	return err
}

// spaceArg names a space.
type spaceArg struct {
	Org   string `arg:"" help:"The org."`
	Space string `arg:"" help:"The space."`
}

func (a spaceArg) find(e *command.Env, api *capi.Client) (string, error) {
	org, err := api.First(e.Ctx, "org "+a.Org, "/v3/organizations?names="+url.QueryEscape(a.Org))
	if err != nil {
		return "", err
	}
	return api.First(e.Ctx, "space "+a.Space+" in the org "+a.Org, "/v3/spaces?organization_guids="+org+"&names="+url.QueryEscape(a.Space))
}

// poolSpaceArg names a pool, and a space that has it or is to.
type poolSpaceArg struct {
	poolArg
	spaceArg
}

// openWithSpace logs in and finds both.
func (a *poolSpaceArg) openWithSpace(e *command.Env) (api *capi.Client, path, space string, err error) {
	if api, path, err = a.open(e); err != nil {
		return nil, "", "", err
	}
	space, err = a.find(e, api)
	return api, path, space, err
}

type poolAssignCmd struct{ poolSpaceArg }

// Run gives a space a pool.
func (c *poolAssignCmd) Run(e *command.Env) error {
	api, path, space, err := c.openWithSpace(e)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "POST", path+"/relationships/spaces", capi.Doc{"data": []capi.Doc{{"guid": space}}}, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Assigned placement pool %[2]s to %[1]s. Restart its apps for it to take effect.\n", c.Org+"/"+c.Space, c.Pool)
	return err
}

type poolUnassignCmd struct{ poolSpaceArg }

// Run takes a space out of a pool.
func (c *poolUnassignCmd) Run(e *command.Env) error {
	api, path, space, err := c.openWithSpace(e)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", path+"/relationships/spaces/"+space, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s/%s now uses the default placement pool. Restart its apps for it to take effect.\n", c.Org, c.Space)
	return err
}
