package api

import (
	"regexp"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/stacks"
	"cupola/store"
	"cupola/store/cf"
)

func viewBuildpack(c *call, b *cf.Buildpack) doc {
	self := "/v3/buildpacks/" + b.GUID
	return with(resource(b.Resource), doc{
		"name": b.Name, "stack": control.OrNil(b.Stack), "state": b.State, "lifecycle": b.Lifecycle, "filename": control.OrNil(b.Filename),
		"position": b.Position, "enabled": b.Enabled, "locked": b.Locked, "metadata": metadata(b.Metadata),
		"links": doc{"self": c.link("%s", self), "upload": c.action("POST", "%s/upload", self)},
	})
}

// listBuildpacks lists in the order in which buildpacks are tried.
var listBuildpacks = inTx(func(c *call) (*response, error) {
	return listRows(c, store.Buildpacks, viewBuildpack, func(q *listQuery) error {
		if q.Order == "" {
			q.Order = "position"
		}
		return nil
	})
})

type buildpackRequest struct {
	Name      change.Field[string] `json:"name"`
	Stack     change.Field[string] `json:"stack"`
	Position  change.Field[int]    `json:"position"`
	Enabled   change.Field[bool]   `json:"enabled"`
	Locked    change.Field[bool]   `json:"locked"`
	Lifecycle change.Field[string] `json:"lifecycle"`
	Metadata  *change.Metadata     `json:"metadata"`
}

var buildpackName = regexp.MustCompile(`^[-\w]+$`)

func (r buildpackRequest) Validate() []string {
	given := r.Name.Set && !r.Name.Null
	return control.Must(!given || buildpackName.MatchString(r.Name.V), "Name is invalid",
		len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)",
		len(r.Stack.V) <= 250, "Stack is too long (maximum is 250 characters)",
		!r.Position.Set || r.Position.Null || r.Position.V >= 1, "Position must be greater than or equal to 1",
		r.Lifecycle.Or("buildpack") == "buildpack" || r.Lifecycle.V == "cnb", `Lifecycle must be either "buildpack" or "cnb"`,
		r.Lifecycle.V != "cnb", "Lifecycle cnb is not available here")
}

func createBuildpack(c *call) (*response, error) {
	var req buildpackRequest
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Name.V == "" {
		return nil, cf.Unprocessable("Name can't be blank, Name is invalid")
	}
	b := &cf.Buildpack{Name: req.Name.V, Stack: req.Stack.V, State: "AWAITING_UPLOAD", Lifecycle: "buildpack",
		Enabled: req.Enabled.Or(true), Locked: req.Locked.Or(false)}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := stacks.InsertBuildpack(c.Session, b, req.Position.Or(1)); err != nil {
		return nil, err
	}
	return created(viewBuildpack(c, b))
}

// buildpack is the buildpack of {guid}, if the actor is an admin.
func (c *call) buildpack() (*cf.Buildpack, error) {
	b, err := store.Buildpacks.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	return b, c.PermitAdmin()
}

func updateBuildpack(c *call) (*response, error) {
	b, err := c.buildpack()
	if err != nil {
		return nil, err
	}
	var req buildpackRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Lifecycle.Set {
		return nil, cf.Unprocessable("Unknown field(s): 'lifecycle'")
	}
	if req.Stack.Set && req.Stack.V != b.Stack && b.Stack != "" {
		return nil, cf.Unprocessable("Buildpack stack cannot be changed")
	}
	b.Name, b.Stack = req.Name.Or(b.Name), req.Stack.Or(b.Stack)
	b.Enabled, b.Locked = req.Enabled.Or(b.Enabled), req.Locked.Or(b.Locked)
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := stacks.SaveBuildpack(c.Session, b); err != nil {
		return nil, err
	}
	if req.Position.Set {
		if err := stacks.MoveBuildpack(c.Tx, b, req.Position.Or(b.Position)); err != nil {
			return nil, err
		}
	}
	return &response{body: viewBuildpack(c, b)}, stacks.BuildpackEvent(c.Session, "update", b)
}

func deleteBuildpack(c *call) (*response, error) {
	b, err := c.buildpack()
	if err != nil {
		return nil, err
	}
	if err := store.Buildpacks.Delete(c.Tx, b.GUID); err != nil {
		return nil, err
	}
	rest, _, err := store.Buildpacks.List(c.Tx, store.Query{Order: "position"})
	if err != nil {
		return nil, err
	}
	if err := stacks.NumberBuildpacks(c.Tx, rest); err != nil {
		return nil, err
	}
	if err := stacks.BuildpackEvent(c.Session, "delete", b); err != nil {
		return nil, err
	}
	return c.accepted("buildpack.delete", "buildpacks", b.GUID)
}
