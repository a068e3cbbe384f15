package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// PoolsCmd is cupola placement-pools.
type PoolsCmd struct {
	List     poolListCmd     `cmd:"" aliases:"ls" help:"List the placement pools."`
	Create   poolCreateCmd   `cmd:"" help:"Create a placement pool: the tags that cells must and must not have."`
	Update   poolUpdateCmd   `cmd:"" help:"Update a placement pool. It takes effect when apps restart."`
	Delete   poolDeleteCmd   `cmd:"" aliases:"rm" help:"Delete a placement pool; its spaces use the default one, and its apps that of their space."`
	Assign   poolAssignCmd   `cmd:"" help:"Assign a placement pool to a space, or to one app."`
	Unassign poolUnassignCmd `cmd:"" help:"Let a space use the default placement pool, or an app the one of its space."`
}

// poolView is a placement pool as the API shows it.
type poolView struct {
	GUID          string   `json:"guid"`
	Name          string   `json:"name"`
	Require       []string `json:"require"`
	Disallow      []string `json:"disallow"`
	Default       bool     `json:"default"`
	Relationships struct {
		Spaces poolMembers `json:"spaces"`
		Apps   poolMembers `json:"apps"`
	} `json:"relationships"`
}

// poolMembers are those that have a pool.
type poolMembers struct {
	Data []struct {
		GUID string `json:"guid"`
	} `json:"data"`
}

func (m poolMembers) has(guid string) bool {
	for _, one := range m.Data {
		if one.GUID == guid {
			return true
		}
	}
	return false
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
	names, err := spaceNames(e, api)
	if err == nil {
		err = addAppNames(e, api, list.Resources, names)
	}
	if err != nil {
		return err
	}
	return writePools(e.Out, list.Resources, names)
}

// addAppNames adds "org/space/app" of the apps that have a pool, by the app's GUID, to the names of spaces.
func addAppNames(e *command.Env, api *capi.Client, pools []poolView, names map[string]string) error {
	var guids []string
	for _, p := range pools {
		for _, a := range p.Relationships.Apps.Data {
			guids = append(guids, a.GUID)
		}
	}
	for some := range slices.Chunk(guids, 50) {
		apps, err := capi.List[struct {
			GUID, Name    string
			Relationships struct {
				Space struct{ Data struct{ GUID string } }
			}
		}](e.Ctx, api, "/v3/apps?per_page=5000&guids="+strings.Join(some, ","))
		if err != nil {
			return err
		}
		for _, a := range apps {
			names[a.GUID] = names[a.Relationships.Space.Data.GUID] + "/" + a.Name
		}
	}
	return nil
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
	fmt.Fprintln(t, "NAME\tREQUIRE\tDISALLOW\tSPACES AND APPS")
	for _, p := range pools {
		var members []string
		if p.Default {
			members = append(members, "all others (default)")
		}
		for _, m := range slices.Concat(p.Relationships.Spaces.Data, p.Relationships.Apps.Data) {
			members = append(members, names[m.GUID])
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, listText(p.Require), listText(p.Disallow), listText(members))
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
	guid, err := api.First(e.Ctx, "placement pool "+a.Pool, "/v3/placement_pools?"+capi.Filter("names", a.Pool))
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
	_, err = fmt.Fprintf(e.Out, "Updated placement pool %s. Restart its apps and those of its spaces for it to take effect.\n", c.Pool)
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
	org, err := api.First(e.Ctx, "org "+a.Org, "/v3/organizations?"+capi.Filter("names", a.Org))
	if err != nil {
		return "", err
	}
	return api.First(e.Ctx, "space "+a.Space+" in the org "+a.Org, "/v3/spaces?organization_guids="+org+"&"+capi.Filter("names", a.Space))
}

// placedArg names a space, or one of its apps: either can have a pool.
type placedArg struct {
	spaceArg
	App string `arg:"" optional:"" help:"The app; by default all of the space without their own placement pool." placeholder:"APP"`
}

// placed is a space, or one of its apps.
type placed struct {
	name  string
	space string // GUID
	app   string // GUID; "" for the space
}

// find finds it.
func (a placedArg) find(e *command.Env, api *capi.Client) (p placed, err error) {
	p.name = a.Org + "/" + a.Space
	if p.space, err = a.spaceArg.find(e, api); err != nil || a.App == "" {
		return p, err
	}
	p.name += "/" + a.App
	p.app, err = api.First(e.Ctx, "app "+a.App+" in the space "+a.Space, "/v3/apps?space_guids="+p.space+"&"+capi.Filter("names", a.App))
	return p, err
}

// assign gives it the pool at a path.
func (p placed) assign(ctx context.Context, api *capi.Client, pool string) error {
	relation, guid := p.relation()
	return api.Call(ctx, "POST", pool+"/relationships/"+relation, capi.Doc{"data": []capi.Doc{{"guid": guid}}}, nil)
}

// unassign takes the pool at a path from it.
func (p placed) unassign(ctx context.Context, api *capi.Client, pool string) error {
	relation, guid := p.relation()
	return api.Call(ctx, "DELETE", pool+"/relationships/"+relation+"/"+guid, nil, nil)
}

// relation is what a pool calls it.
func (p placed) relation() (relation, guid string) {
	if p.app != "" {
		return "apps", p.app
	}
	return "spaces", p.space
}

// has reports whether a pool is its own.
func (p placed) has(pool poolView) bool {
	if p.app != "" {
		return pool.Relationships.Apps.has(p.app)
	}
	return pool.Relationships.Spaces.has(p.space)
}

// poolPlacedArg names a pool, and what has it or is to.
type poolPlacedArg struct {
	poolArg
	placedArg
}

// openWithPlaced logs in and finds both.
func (a *poolPlacedArg) openWithPlaced(e *command.Env) (api *capi.Client, path string, p placed, err error) {
	if api, path, err = a.open(e); err != nil {
		return nil, "", p, err
	}
	p, err = a.find(e, api)
	return api, path, p, err
}

type poolAssignCmd struct{ poolPlacedArg }

// Run gives a space or an app a pool.
func (c *poolAssignCmd) Run(e *command.Env) error {
	api, path, p, err := c.openWithPlaced(e)
	if err == nil {
		err = p.assign(e.Ctx, api, path)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Assigned placement pool %s to %s. Restart %s for it to take effect.\n", c.Pool, p.name, c.restarted())
	return err
}

// restarted is what restarts when a pool takes effect.
func (a placedArg) restarted() string {
	if a.App != "" {
		return "the app"
	}
	return "its apps"
}

type poolUnassignCmd struct{ poolPlacedArg }

// Run takes a space or an app out of a pool.
func (c *poolUnassignCmd) Run(e *command.Env) error {
	api, path, p, err := c.openWithPlaced(e)
	if err == nil {
		err = p.unassign(e.Ctx, api, path)
	}
	if err != nil {
		return err
	}
	instead := "the default placement pool"
	if c.App != "" {
		instead = "the placement pool of its space"
	}
	_, err = fmt.Fprintf(e.Out, "%s now uses %s. Restart %s for it to take effect.\n", p.name, instead, c.restarted())
	return err
}
