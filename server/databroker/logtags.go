package databroker

import (
	"strings"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// TagInstance is the tag of log lines and metrics that has the GUID of their service instance.
const TagInstance = "service_instance_id"

// LogTags are the tags of the log lines and metrics of a service instance: its name, and those of where it is. One
// that was purged has its GUID alone.
func LogTags(tx *store.Tx, instanceGUID string) (map[string]string, error) {
	tags := map[string]string{TagInstance: instanceGUID}
	i, err := store.ServiceInstances.Find(tx, instanceGUID)
	if err != nil || i == nil {
		return tags, ignoreDamaged(err)
	}
	tags["service_instance_name"] = i.Name
	space, err := store.Spaces.Get(tx, i.SpaceGUID)
	if err != nil {
		return tags, ignoreDamaged(err)
	}
	tags["space_id"], tags["space_name"] = space.GUID, space.Name
	org, err := store.Orgs.Get(tx, space.OrgGUID)
	if err != nil {
		return tags, ignoreDamaged(err)
	}
	tags["organization_id"], tags["organization_name"] = org.GUID, org.Name
	return tags, nil
}

// ignoreDamaged lets an instance run on without its names.
func ignoreDamaged(err error) error {
	if store.IsDamaged(err) {
		return nil
	}
	return err
}

// logTarget is under which name the log lines of an instance are kept.
func (s service) logTarget(i *cf.DataInstance) lrp.LogTarget {
	return lrp.LogTarget{GUID: i.GUID, Source: "SERVICE/" + strings.ToUpper(s.name)}
}
