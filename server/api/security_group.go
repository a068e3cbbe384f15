package api

import (
	"encoding/json"
	"slices"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
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
		"relationships": doc{"running_spaces": toMany(c.visibleSpaces(g.RunningSpaces)), "staging_spaces": toMany(c.visibleSpaces(g.StagingSpaces))},
		"links":         doc{"self": c.link("/v3/security_groups/%s", g.GUID)},
	})
}

// visibleSpaces are those of the spaces that the actor sees.
func (c *call) visibleSpaces(guids []string) []string {
	if c.Scope == nil {
		return guids
	}
	return control.Without(guids, func(g string) bool { return !slices.Contains(c.Scope.Spaces, g) })
}

type securityGroupRequest struct {
	Name            change.Field[string]          `json:"name"`
	Rules           change.Field[json.RawMessage] `json:"rules"`
	GloballyEnabled struct {
		Running change.Field[bool] `json:"running"`
		Staging change.Field[bool] `json:"staging"`
	} `json:"globally_enabled"`
	Relationships struct {
		RunningSpaces refs `json:"running_spaces"`
		StagingSpaces refs `json:"staging_spaces"`
	} `json:"relationships"`
}

func (r securityGroupRequest) Validate() []string {
	_, faults := r.rules(nil)
	return append(control.Must(len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)"), faults...)
}

// rules are the rules of the request, or others when it has none.
func (r securityGroupRequest) rules(other []cf.SecurityRule) ([]cf.SecurityRule, []string) {
	if !r.Rules.Set {
		return other, nil
	}
	if r.Rules.Null {
		return nil, []string{"Rules must be an array"}
	}
	return parseRules(r.Rules.V)
}

func (r securityGroupRequest) apply(g *cf.SecurityGroup) {
	g.Name = r.Name.Or(g.Name)
	g.Rules, _ = r.rules(g.Rules)
	g.GlobalRunning = r.GloballyEnabled.Running.Or(g.GlobalRunning)
	g.GlobalStaging = r.GloballyEnabled.Staging.Or(g.GlobalStaging)
}

func createSecurityGroup(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req securityGroupRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	g := &cf.SecurityGroup{RunningSpaces: req.Relationships.RunningSpaces.guids(), StagingSpaces: req.Relationships.StagingSpaces.guids()}
	req.apply(g)
	if err := orgs.AddSecurityGroup(c.Session, g); err != nil {
		return nil, err
	}
	return created(viewSecurityGroup(c, g))
}

// securityGroup is the security group of {guid}, if the actor sees it.
func (c *call) securityGroup() (*cf.SecurityGroup, error) {
	return store.SecurityGroups.Visible(c.Tx, c.guid(), c.Scope)
}

func updateSecurityGroup(c *call) (*response, error) {
	g, err := c.securityGroup()
	if err != nil {
		return nil, err
	}
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req securityGroupRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Name.Set && req.Name.V == "" {
		return nil, cf.Unprocessable("Name is too short (minimum is 1 character)")
	}
	req.apply(g)
	if err := orgs.SaveSecurityGroup(c.Session, g); err != nil {
		return nil, err
	}
	return ok(viewSecurityGroup(c, g))
}

func deleteSecurityGroup(c *call) (*response, error) {
	g, err := c.securityGroup()
	if err != nil {
		return nil, err
	}
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if err := store.SecurityGroups.Delete(c.Tx, g.GUID); err != nil {
		return nil, err
	}
	return c.accepted("security_group.delete", "security_groups", g.GUID)
}

// boundSpaces is the list of spaces that the path names: running_spaces or
// staging_spaces.
func (c *call) boundSpaces(g *cf.SecurityGroup) (*[]string, error) {
	switch c.param("kind") {
	case "running_spaces":
		return &g.RunningSpaces, nil
	case "staging_spaces":
		return &g.StagingSpaces, nil
	}
	c.Checked = true
	return nil, cf.Errorf(cf.NotFound, "Unknown request")
}

func bindSecurityGroup(c *call) (*response, error) {
	g, err := c.securityGroup()
	if err != nil {
		return nil, err
	}
	spaces, err := c.boundSpaces(g)
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := orgs.MayBind(c.Session, req.guids()); err != nil {
		return nil, err
	}
	for _, s := range req.guids() {
		if !slices.Contains(*spaces, s) {
			*spaces = append(*spaces, s)
		}
	}
	if err := store.SecurityGroups.Update(c.Tx, g); err != nil {
		return nil, err
	}
	return ok(with(toMany(*spaces), doc{"links": doc{"self": c.link("/v3/security_groups/%s/relationships/%s", g.GUID, c.param("kind"))}}))
}

func unbindSecurityGroup(c *call) (*response, error) {
	g, err := c.securityGroup()
	if err != nil {
		return nil, err
	}
	spaces, err := c.boundSpaces(g)
	if err != nil {
		return nil, err
	}
	guid := c.param("space")
	space, err := store.Spaces.Visible(c.Tx, guid, c.Scope)
	notBound := cf.Unprocessable("Unable to unbind security group from space with guid '%s'. Ensure the space is bound to this security group.", guid)
	if err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "%s", notBound.Detail)
	}
	if err := c.Permit(access.At(space)); err != nil {
		return nil, err
	}
	if !slices.Contains(*spaces, guid) {
		return nil, notBound
	}
	*spaces = control.Without(*spaces, func(s string) bool { return s == guid })
	if err := store.SecurityGroups.Update(c.Tx, g); err != nil {
		return nil, err
	}
	return noContent()
}

func listRunningGroups(c *call) (*response, error) {
	return c.listSpaceGroups("running_in_space_guids")
}
func listStagingGroups(c *call) (*response, error) {
	return c.listSpaceGroups("staging_in_space_guids")
}

// listSpaceGroups lists the groups that hold in a space: its own and those
// that hold everywhere.
func (c *call) listSpaceGroups(filter string) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.SecurityGroups, viewSecurityGroup, func(q *listQuery) error {
		q.Where[filter] = []string{s.GUID}
		return nil
	})
}

// SeedSecurityGroups makes Cloud Foundry's default groups in a new database:
// apps reach public networks and name servers, and nothing private.
func SeedSecurityGroups(tx *store.Tx) error {
	n, err := store.SecurityGroups.Count(tx, store.Query{})
	if err != nil || n > 0 {
		return err
	}
	public := &cf.SecurityGroup{Name: "public_networks", GlobalRunning: true, GlobalStaging: true}
	for _, r := range []string{"0.0.0.0-9.255.255.255", "11.0.0.0-169.253.255.255", "169.255.0.0-172.15.255.255", "172.32.0.0-192.167.255.255", "192.169.0.0-255.255.255.255"} {
		public.Rules = append(public.Rules, cf.SecurityRule{Protocol: "all", Destination: r})
	}
	if err := store.SecurityGroups.Insert(tx, public); err != nil {
		return err
	}
	return store.SecurityGroups.Insert(tx, &cf.SecurityGroup{Name: "dns", GlobalRunning: true, GlobalStaging: true, Rules: []cf.SecurityRule{
		{Protocol: "tcp", Destination: "0.0.0.0/0", Ports: "53"}, {Protocol: "udp", Destination: "0.0.0.0/0", Ports: "53"}}})
}
