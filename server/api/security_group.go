package api

import (
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewSecurityGroup(c *call, g *cf.SecurityGroup) doc {
	rules := g.Rules
	if rules == nil {
		rules = []cf.SecurityRule{}
	}
	return with(resource(g.Resource), doc{
		"name": g.Name, "rules": rules, "globally_enabled": doc{"running": g.GlobalRunning, "staging": g.GlobalStaging},
		"relationships": doc{"running_spaces": toMany(visibleSpaces(c, g.RunningSpaces)), "staging_spaces": toMany(visibleSpaces(c, g.StagingSpaces))},
		"links":         doc{"self": c.link("/v3/security_groups/%s", g.GUID)},
	})
}

// visibleSpaces are those of the spaces that the actor sees.
func visibleSpaces(c *call, guids []string) []string {
	if c.Scope == nil {
		return guids
	}
	return among(guids, c.Scope.Spaces)
}

var findSecurityGroup = ofPlatform(store.SecurityGroups)

// boundSpaces is the group of {guid}, if the actor sees it, and of its lists of
// spaces the one that the path names: running_spaces or staging_spaces.
func boundSpaces(c *call) (*cf.SecurityGroup, *[]string, error) {
	g, err := store.SecurityGroups.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, nil, err
	}
	switch c.param("kind") {
	case "running_spaces":
		return g, &g.RunningSpaces, nil
	case "staging_spaces":
		return g, &g.StagingSpaces, nil
	}
	return nil, nil, cf.Errorf(cf.NotFound, "Unknown request")
}

func bindSecurityGroup(c *call) (*response, error) {
	g, spaces, err := boundSpaces(c)
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := orgs.BindSecurityGroup(c.Session, g, spaces, req.GUIDs()); err != nil {
		return nil, err
	}
	return ok(with(toMany(*spaces), doc{"links": doc{"self": c.link("/v3/security_groups/%s/relationships/%s", g.GUID, c.param("kind"))}}))
}

func unbindSecurityGroup(c *call) (*response, error) {
	g, spaces, err := boundSpaces(c)
	if err != nil {
		return nil, err
	}
	if err := orgs.UnbindSecurityGroup(c.Session, g, spaces, c.param("space")); err != nil {
		return nil, err
	}
	return noContent()
}
