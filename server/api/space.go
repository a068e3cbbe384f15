package api

import (
	"cupola/server/control"
	"cupola/server/control/access"
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
	s, err := orgs.CreateSpace(c.Session, req.Relationships.Organization.guid(), orgs.SpaceChange{Name: req.Name, Metadata: req.Metadata})
	if err != nil {
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
	var req orgs.SpaceChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	if err := orgs.UpdateSpace(c.Session, s, req); err != nil {
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
