package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func viewAppUsage(c *call, e *cf.AppUsageEvent) doc {
	return with(resource(e.Resource), doc{
		"state":                     doc{"current": e.State, "previous": e.PreviousState},
		"app":                       doc{"guid": e.AppGUID, "name": e.AppName},
		"process":                   doc{"guid": control.OrNil(e.ProcessGUID), "type": control.OrNil(e.ProcessType)},
		"space":                     doc{"guid": e.SpaceGUID, "name": e.SpaceName},
		"organization":              doc{"guid": e.OrgGUID},
		"buildpack":                 doc{"guid": control.OrNil(e.BuildpackGUID), "name": control.OrNil(desire.Redact(e.BuildpackName))},
		"task":                      doc{"guid": control.OrNil(e.TaskGUID), "name": control.OrNil(e.TaskName)},
		"memory_in_mb_per_instance": doc{"current": e.MemoryMB, "previous": e.PreviousMemoryMB},
		"instance_count":            doc{"current": e.Instances, "previous": e.PreviousInstances},
		"links":                     doc{"self": c.link("/v3/app_usage_events/%s", e.GUID)},
	})
}

func viewServiceUsage(c *call, e *cf.ServiceUsageEvent) doc {
	named := func(guid, name string) doc { return doc{"guid": control.OrNil(guid), "name": control.OrNil(name)} }
	return with(resource(e.Resource), doc{
		"state":            e.State,
		"space":            doc{"guid": e.SpaceGUID, "name": e.SpaceName},
		"organization":     doc{"guid": e.OrgGUID},
		"service_instance": doc{"guid": e.InstanceGUID, "name": e.InstanceName, "type": e.InstanceType},
		"service_plan":     named(e.PlanGUID, e.PlanName),
		"service_offering": named(e.OfferingGUID, e.OfferingName),
		"service_broker":   named(e.BrokerGUID, e.BrokerName),
		"links":            doc{"self": c.link("/v3/service_usage_events/%s", e.GUID)},
	})
}

// listUsage lists usage events, from after one of them where that is asked for.
func listUsage[T any](t *store.Table[T], v view[T], what string) endpoint {
	return inTx(func(c *call) (*response, error) {
		return listRows(c, t, v, func(q *listQuery) error {
			from, set := q.Where["after_guid"]
			if !set {
				return nil
			}
			if len(from) != 1 {
				return badQuery("After guid filter accepts only one guid")
			}
			_, err := t.Visible(c.Tx, from[0], c.Scope)
			return control.Unprocessable(err, "After guid filter must be a valid %s usage event guid.", what)
		})
	})
}

// reseedUsage forgets what usage was recorded, and begins with what there is.
func reseedUsage(reseed func(*store.Tx) error) endpoint {
	return inTx(func(c *call) (*response, error) {
		if err := c.PermitAdmin(); err != nil {
			return nil, err
		}
		if err := reseed(c.Tx); err != nil {
			return nil, err
		}
		return ok(doc{})
	})
}
