package api

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/deletion"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewSpace(c *call, s *cf.Space) doc {
	return with(resource(s.Resource), doc{
		"name": s.Name, "metadata": metadata(s.Metadata),
		"relationships": doc{"organization": toOne(s.OrgGUID), "quota": toOne(s.QuotaGUID)},
		"links": doc{
			"self":           c.link("/v3/spaces/%s", s.GUID),
			"organization":   c.link("/v3/organizations/%s", s.OrgGUID),
			"features":       c.link("/v3/spaces/%s/features", s.GUID),
			"apply_manifest": c.action("POST", "/v3/spaces/%s/actions/apply_manifest", s.GUID),
		},
	})
}

type spaceRequest struct {
	Name          change.Field[string] `json:"name"`
	Metadata      *change.Metadata     `json:"metadata"`
	Relationships struct {
		Organization ref `json:"organization"`
	} `json:"relationships"`
}

const spaceIncludes = "include=org|organization"

func includeOfSpaces(c *call, rows []*cf.Space, _ string) (string, []doc, error) {
	docs, err := including(c, store.Orgs, viewOrg, control.GUIDs(rows, func(s *cf.Space) string { return s.OrgGUID }))
	return "organizations", docs, err
}

var listSpaces = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Spaces, viewSpace, includeOfSpaces, spaceIncludes)
})

func createSpace(c *call) (*response, error) {
	var req spaceRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	orgGUID := req.Relationships.Organization.guid()
	org, err := store.Orgs.Visible(c.Tx, orgGUID, c.Scope)
	if err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "Invalid organization. Ensure the organization exists and you have access to it.")
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return nil, err
	}
	s := &cf.Space{Name: req.Name.V, OrgGUID: org.GUID, AllowSSH: true}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	err = store.Spaces.Insert(c.Tx, s)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("Name must be unique per organization")
	}
	if err != nil {
		return nil, err
	}
	if err := orgs.SpaceEvent(c.Session, audit.SpaceCreate, s); err != nil {
		return nil, err
	}
	return created(viewSpace(c, s))
}

// space is the space of {guid}, if the actor sees it and satisfies the rule.
func (c *call) space() (*cf.Space, error) {
	s, err := store.Spaces.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return s, c.Permit(access.At(s))
}

func updateSpace(c *call) (*response, error) {
	var req struct {
		Name     change.Field[string] `json:"name"`
		Metadata *change.Metadata     `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	s.Name = req.Name.Or(s.Name)
	if err := control.Invalid(control.NameFaults(s.Name)); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	err = store.Spaces.Update(c.Tx, s)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("Name must be unique per organization")
	}
	if err != nil {
		return nil, err
	}
	if err := orgs.SpaceEvent(c.Session, audit.SpaceUpdate, s); err != nil {
		return nil, err
	}
	return ok(viewSpace(c, s))
}

func deleteSpace(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	return c.deletes(deletion.Space, "spaces", s.GUID)
}
