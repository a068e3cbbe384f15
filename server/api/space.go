package api

import (
	"cupola/server/control"
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

const spaceIncludes = "include=org|organization"

func includeOfSpaces(c *call, rows []*cf.Space, _ string) (string, []doc, error) {
	docs, err := including(c, store.Orgs, viewOrg, control.GUIDs(rows, func(s *cf.Space) string { return s.OrgGUID }))
	return "organizations", docs, err
}

var listSpaces = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Spaces, viewSpace, includeOfSpaces, spaceIncludes)
})

// findSpace finds the space of {guid}.
func findSpace(c *call) (*cf.Space, error) { return c.Space(c.guid()) }
