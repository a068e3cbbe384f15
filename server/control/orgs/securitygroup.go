package orgs

import (
	"encoding/json"
	"slices"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// SecurityGroupChange is a change of a security group. Only a new one names the
// spaces that it is bound to.
type SecurityGroupChange struct {
	Name            change.Field[string]          `json:"name"`
	Rules           change.Field[json.RawMessage] `json:"rules"`
	GloballyEnabled struct {
		Running change.Field[bool] `json:"running"`
		Staging change.Field[bool] `json:"staging"`
	} `json:"globally_enabled"`
	Relationships struct {
		RunningSpaces change.ToMany `json:"running_spaces"`
		StagingSpaces change.ToMany `json:"staging_spaces"`
	} `json:"relationships"`
}

// Validate lists what is wrong with the change, in Cloud Controller's words.
func (r SecurityGroupChange) Validate() []string {
	_, faults := r.rules(nil)
	return append(control.Must(len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)"), faults...)
}

// rules are the rules of the change, or others when it has none.
func (r SecurityGroupChange) rules(other []cf.SecurityRule) ([]cf.SecurityRule, []string) {
	if !r.Rules.Set {
		return other, nil
	}
	if r.Rules.Null {
		return nil, []string{"Rules must be an array"}
	}
	return parseRules(r.Rules.V)
}

func (r SecurityGroupChange) apply(g *cf.SecurityGroup) {
	g.Name = r.Name.Or(g.Name)
	g.Rules, _ = r.rules(g.Rules)
	g.GlobalRunning = r.GloballyEnabled.Running.Or(g.GlobalRunning)
	g.GlobalStaging = r.GloballyEnabled.Staging.Or(g.GlobalStaging)
}

// CreateSecurityGroup adds a security group, which may be bound to spaces already.
func CreateSecurityGroup(c *control.Session, req SecurityGroupChange) (*cf.SecurityGroup, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	g := &cf.SecurityGroup{RunningSpaces: req.Relationships.RunningSpaces.GUIDs(), StagingSpaces: req.Relationships.StagingSpaces.GUIDs()}
	if req.apply(g); g.Name == "" {
		return nil, cf.Unprocessable("Name can't be blank")
	}
	for _, list := range [][]string{g.StagingSpaces, g.RunningSpaces} {
		if _, unknown, err := visibleSpaces(c, list); err != nil || len(unknown) > 0 {
			return nil, control.OrElse(err, cf.Unprocessable("Spaces with guids %s do not exist.", control.Inspect(unknown)))
		}
	}
	return g, securityGroupTaken(g, store.SecurityGroups.Insert(c.Tx, g))
}

// UpdateSecurityGroup changes a security group.
func UpdateSecurityGroup(c *control.Session, g *cf.SecurityGroup, req SecurityGroupChange) error {
	if req.Name.Set && req.Name.V == "" {
		return cf.Unprocessable("Name is too short (minimum is 1 character)")
	}
	req.apply(g)
	return securityGroupTaken(g, store.SecurityGroups.Update(c.Tx, g))
}

func securityGroupTaken(g *cf.SecurityGroup, err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Security group with name '%s' already exists.", g.Name)
	}
	return err
}

// DeleteSecurityGroup deletes a security group.
func DeleteSecurityGroup(c *control.Session, g *cf.SecurityGroup) error {
	return store.SecurityGroups.Delete(c.Tx, g.GUID)
}

// BindSecurityGroup adds spaces, in each of which the actor satisfies the rule, to a
// list of the group: those where it holds for apps, or for stagings.
func BindSecurityGroup(c *control.Session, g *cf.SecurityGroup, bound *[]string, guids []string) error {
	c.Checked = true
	for _, guid := range guids {
		if _, err := c.InSpace(guid); err != nil && !store.IsNotFound(err) {
			return err
		}
	}
	if _, unknown, err := visibleSpaces(c, guids); err != nil || len(unknown) > 0 {
		return control.OrElse(err, cf.Unprocessable("Spaces with guids %s do not exist, or you do not have access to them.", control.Inspect(unknown)))
	}
	*bound = control.Union(*bound, guids)
	return store.SecurityGroups.Update(c.Tx, g)
}

// UnbindSecurityGroup takes a space from a list of the group.
func UnbindSecurityGroup(c *control.Session, g *cf.SecurityGroup, bound *[]string, guid string) error {
	notBound := cf.Unprocessable("Unable to unbind security group from space with guid '%s'. Ensure the space is bound to this security group.", guid)
	if _, err := control.Find(c, store.Spaces, guid, access.At); err != nil {
		return control.Unprocessable(err, "%s", notBound.Detail)
	}
	if !slices.Contains(*bound, guid) {
		return notBound
	}
	*bound = control.Drop(*bound, guid)
	return store.SecurityGroups.Update(c.Tx, g)
}

// LeaveSecurityGroups takes a space out of the groups it is bound to.
func LeaveSecurityGroups(c *control.Session, space string) error {
	all, err := store.SecurityGroups.All(c.Tx)
	if err != nil {
		return err
	}
	for _, g := range all {
		if !slices.Contains(g.RunningSpaces, space) && !slices.Contains(g.StagingSpaces, space) {
			continue
		}
		g.RunningSpaces, g.StagingSpaces = control.Drop(g.RunningSpaces, space), control.Drop(g.StagingSpaces, space)
		if err := store.SecurityGroups.Update(c.Tx, g); err != nil {
			return err
		}
	}
	return nil
}
