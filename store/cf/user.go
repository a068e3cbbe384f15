package cf

// User is a user of the UAA and of Cloud Controller, which here are one.
type User struct {
	Resource
	Metadata
	Username     string
	Origin       string // "uaa"
	PasswordHash string // bcrypt; "" for a client's shadow user
	GivenName    string
	FamilyName   string
	Email        string
	Scopes       []string // beyond those of every user: "cloud_controller.admin", …
	TokenSalt    string   // another one voids the user's tokens
}

// RoleType is the type of a Role, in Cloud Controller's words.
type RoleType string

// The roles.
const (
	OrgUser           RoleType = "organization_user"
	OrgManager        RoleType = "organization_manager"
	OrgAuditor        RoleType = "organization_auditor"
	OrgBillingManager RoleType = "organization_billing_manager"
	SpaceDeveloper    RoleType = "space_developer"
	SpaceManager      RoleType = "space_manager"
	SpaceAuditor      RoleType = "space_auditor"
	SpaceSupporter    RoleType = "space_supporter"
)

// RoleTypes are all of them.
var RoleTypes = []RoleType{OrgUser, OrgManager, OrgAuditor, OrgBillingManager, SpaceDeveloper, SpaceManager, SpaceAuditor, SpaceSupporter}

// OfOrg reports whether the role is one in an org rather than in a space.
func (t RoleType) OfOrg() bool {
	switch t {
	case OrgUser, OrgManager, OrgAuditor, OrgBillingManager:
		return true
	}
	return false
}

// Valid reports whether there is such a role.
func (t RoleType) Valid() bool {
	switch t {
	case SpaceDeveloper, SpaceManager, SpaceAuditor, SpaceSupporter:
		return true
	}
	return t.OfOrg()
}

// Role is what a user is in an org or in a space.
type Role struct {
	Resource
	Type      RoleType
	UserGUID  string
	OrgGUID   string // of the space too
	SpaceGUID string // "" for a role in an org
}
