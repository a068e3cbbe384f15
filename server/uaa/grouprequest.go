package uaa

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// groupRequest is a group as clients write it.
type groupRequest struct {
	DisplayName string          `json:"displayName"`
	Description string          `json:"description"`
	Members     []memberRequest `json:"members"`
}

// memberRequest is a member of a group as clients write it: a user, unless it says
// otherwise.
type memberRequest struct {
	Value     string  `json:"value"`
	Type      string  `json:"type"`
	Origin    *string `json:"origin"`
	Operation string  `json:"operation"` // of a PATCH: "delete" ends a membership
}

// errGroup refuses a body that is not a group.
var errGroup = refuse(http.StatusBadRequest, "invalid_scim_resource", "The group could not be read")

func readGroup(r *http.Request) (req groupRequest, err error) {
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return req, errGroup
	}
	return req, nil
}

func (req *groupRequest) check() error {
	if strings.TrimSpace(req.DisplayName) == "" || len(req.DisplayName) > maxUsername || strings.ContainsAny(req.DisplayName, " \t\r\n") {
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "A displayName of at most %d bytes without white space must be provided.", maxUsername)
	}
	for _, m := range req.Members {
		if err := m.check(); err != nil {
			return err
		}
	}
	return nil
}

func (m memberRequest) check() error {
	if m.Type != "" && m.Type != typeUser && m.Type != typeGroup {
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "Invalid type %q of the group member %s: USER and GROUP are accepted", m.Type, m.Value)
	}
	return nil
}

// member is the member that a request means.
func (m memberRequest) member() member { return member{m.Value, cmp.Or(m.Type, typeUser)} }

// groupPatch is a change of a group, as SCIM 1 has it: what is given replaces what there
// is, but members are added to it or deleted; meta.attributes names what is emptied
// before.
type groupPatch struct {
	DisplayName *string         `json:"displayName"`
	Description *string         `json:"description"`
	Members     []memberRequest `json:"members"`
	Meta        struct {
		Attributes []string `json:"attributes"`
	} `json:"meta"`
}

func readPatch(r *http.Request) (p *groupPatch, err error) {
	p = &groupPatch{}
	if err := json.NewDecoder(r.Body).Decode(p); err != nil {
		return nil, errGroup
	}
	return p, nil
}

// apply is the group that a patch makes of g (UAA: ScimGroup.patch).
func (p *groupPatch) apply(g *group) (groupRequest, error) {
	req := groupRequest{DisplayName: g.Name, Description: g.Description}
	for _, m := range g.members {
		req.Members = append(req.Members, memberRequest{Value: m.GUID, Type: m.Type})
	}
	for _, name := range p.Meta.Attributes {
		if err := req.empty(name); err != nil {
			return req, err
		}
	}
	req.Members = slices.DeleteFunc(req.Members, func(have memberRequest) bool {
		return slices.ContainsFunc(p.Members, func(m memberRequest) bool { return m.Value == have.Value })
	})
	for _, m := range p.Members {
		if !strings.EqualFold(m.Operation, "delete") {
			req.Members = append(req.Members, m)
		}
	}
	if p.Description != nil {
		req.Description = *p.Description
	}
	if p.DisplayName != nil {
		req.DisplayName = *p.DisplayName
	}
	return req, nil
}

// empty empties an attribute.
func (req *groupRequest) empty(name string) error {
	switch strings.ToUpper(name) {
	case "DESCRIPTION":
		req.Description = ""
	case "DISPLAYNAME":
		req.DisplayName = ""
	case "MEMBERS":
		req.Members = nil
	case "ZONEID":
		return refuse(http.StatusBadRequest, "scim", "Cannot delete or change ZoneId")
	case "ID":
		return refuse(http.StatusBadRequest, "scim", "Cannot delete or change ID")
	default:
		return refuse(http.StatusBadRequest, "scim", `Attribute %s cannot be removed using "Meta.attributes"`, name)
	}
	return nil
}

// matches refuses a request that is for another version of a group than there is; other
// is the message for that (UAA: ScimGroupEndpoints.getVersion).
func (g *group) matches(etag, other string) error {
	text := strings.Trim(strings.TrimSpace(etag), `"`)
	if text == "*" {
		return nil
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return refuse(http.StatusBadRequest, "scim", "Invalid version match header (should be a version number): %s", etag)
	}
	if version != g.Version {
		return refuse(http.StatusConflict, "scim", "%s", other)
	}
	return nil
}
