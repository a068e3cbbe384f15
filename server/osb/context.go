package osb

import "strings"

// Context is the context object of a request: where an instance is. It omits
// users' annotations, which have no prefix.
type Context struct {
	OrgGUID, OrgName, SpaceGUID, SpaceName string
	OrgAnnotations, SpaceAnnotations       map[string]string
	InstanceName                           string            // "" where a request does not tell it
	InstanceAnnotations                    map[string]string // sent with a request to create one
}

func (c Context) body(create bool) map[string]any {
	m := map[string]any{"platform": "cloudfoundry",
		"organization_guid": c.OrgGUID, "organization_name": c.OrgName, "organization_annotations": public(c.OrgAnnotations),
		"space_guid": c.SpaceGUID, "space_name": c.SpaceName, "space_annotations": public(c.SpaceAnnotations)}
	if c.InstanceName != "" {
		m["instance_name"] = c.InstanceName
	}
	if create {
		m["instance_annotations"] = public(c.InstanceAnnotations)
	}
	return m
}

// public are the annotations whose key has a prefix.
func public(annotations map[string]string) map[string]string {
	m := map[string]string{}
	for k, v := range annotations {
		if strings.Contains(k, "/") {
			m[k] = v
		}
	}
	return m
}
