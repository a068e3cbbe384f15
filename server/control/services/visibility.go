package services

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// Visibility says who may see a plan.
type Visibility struct {
	Type          string `json:"type"`
	Organizations change.Field[[]struct {
		GUID *string `json:"guid"`
	}] `json:"organizations"`
}

// faults are 400s here: Cloud Controller has it so.
func (v Visibility) faults() error {
	if !slices.Contains([]string{cf.VisiblePublic, cf.VisibleAdmin, cf.VisibleOrganization}, v.Type) {
		return cf.Errorf(cf.BadRequest, "Bad request: Type must be one of 'public', 'admin', 'organization'")
	}
	given := v.Organizations.Set && !v.Organizations.Null
	switch {
	case v.Type == cf.VisibleOrganization && (!given || len(v.Organizations.V) == 0):
		return cf.Errorf(cf.BadRequest, "Bad request: Organizations can't be blank")
	case v.Type != cf.VisibleOrganization && given && len(v.Organizations.V) > 0:
		return cf.Errorf(cf.BadRequest, "Bad request: Organizations must be blank")
	}
	for _, o := range v.Organizations.V {
		if o.GUID == nil {
			return cf.Errorf(cf.BadRequest, `Bad request: Organizations organizations list must be structured like this: "organizations": [{"guid": "valid-guid"}]`)
		}
	}
	return nil
}

func (v Visibility) orgs() (list []string) {
	for _, o := range v.Organizations.V {
		if !slices.Contains(list, *o.GUID) {
			list = append(list, *o.GUID)
		}
	}
	return list
}

// SetVisibility says who sees a plan. With add the orgs come to those that see it
// already.
func SetVisibility(c *control.Session, p *cf.ServicePlan, v Visibility, add bool) error {
	if err := v.faults(); err != nil {
		return err
	}
	kind, err := store.ServicePlans.Visibility(c.Tx, p)
	if err != nil {
		return err
	}
	if kind == cf.VisibleSpace {
		return cf.Unprocessable("cannot update plans with visibility type 'space'")
	}
	p.Public = v.Type == cf.VisiblePublic
	if err := store.ServicePlans.Update(c.Tx, p); err != nil {
		return err
	}
	request := audit.Data{"type": v.Type}
	if v.Type == cf.VisibleOrganization {
		request["organizations"] = v.Organizations.V
	}
	if err := setOrgs(c, p, v.orgs(), add && v.Type == cf.VisibleOrganization); err != nil {
		return err
	}
	return visibilityEvent(c, audit.ServicePlanVisibilityUpdate, p, "", request)
}

// setOrgs lets orgs see a plan, and those that do already only when add is set.
func setOrgs(c *control.Session, p *cf.ServicePlan, orgs []string, add bool) error {
	visible, err := store.ServicePlanVisibilities.By(c.Tx, "service_plan_guids", p.GUID)
	if err != nil {
		return err
	}
	for _, v := range visible {
		if i := slices.Index(orgs, v.OrgGUID); i >= 0 {
			orgs = slices.Delete(orgs, i, i+1)
		} else if !add {
			err = store.ServicePlanVisibilities.Delete(c.Tx, v.GUID)
		}
		if err != nil {
			return err
		}
	}
	for _, guid := range orgs {
		if _, err := store.Orgs.Get(c.Tx, guid); err != nil {
			return control.Unprocessable(err, "Could not find VCAP::CloudController::Organization with guid: %s", guid)
		}
		if err := store.ServicePlanVisibilities.Insert(c.Tx, &cf.ServicePlanVisibility{PlanGUID: p.GUID, OrgGUID: guid}); err != nil {
			return err
		}
	}
	return nil
}

// HidePlan takes the sight of a plan from an org.
func HidePlan(c *control.Session, p *cf.ServicePlan, orgGUID string) error {
	kind, err := store.ServicePlans.Visibility(c.Tx, p)
	if err != nil {
		return err
	}
	if kind != cf.VisibleOrganization {
		return cf.Unprocessable("Cannot delete visibilities from non-org-restricted plans")
	}
	org, err := store.Orgs.Get(c.Tx, orgGUID)
	if err != nil {
		return err
	}
	v, err := store.ServicePlanVisibilities.First(c.Tx, store.Query{Where: map[string][]string{"service_plan_guids": {p.GUID}, "organization_guids": {org.GUID}}})
	if err != nil {
		return err
	}
	if err := store.ServicePlanVisibilities.Delete(c.Tx, v.GUID); err != nil {
		return err
	}
	return visibilityEvent(c, audit.ServicePlanVisibilityDelete, p, org.GUID, audit.Data{})
}

func visibilityEvent(c *control.Session, kind audit.Type, p *cf.ServicePlan, org string, request audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "service_plan_visibility", GUID: p.GUID, Place: authz.Place{OrgGUID: org}}, audit.Data{"request": request})
}
