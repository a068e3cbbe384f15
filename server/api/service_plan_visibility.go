package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// viewVisibility shows who sees a plan. Orgs that the actor does not see are
// left out; with none of them at all, when orgs is false.
func viewVisibility(c *call, p *cf.ServicePlan, orgs bool) (doc, error) {
	kind, err := c.Tx.PlanVisibility(p)
	if err != nil {
		return nil, err
	}
	d := doc{"type": kind}
	switch {
	case kind == cf.VisibleSpace:
		d["space"], err = c.spaceOfPlan(p)
	case kind == cf.VisibleOrganization && orgs:
		d["organizations"], err = c.orgsOfPlan(p)
	}
	return d, err
}

func (c *call) spaceOfPlan(p *cf.ServicePlan) (doc, error) {
	o, err := store.ServiceOfferings.Get(c.Tx, p.OfferingGUID)
	if err != nil {
		return nil, err
	}
	b, err := store.ServiceBrokers.Get(c.Tx, o.BrokerGUID)
	if err != nil {
		return nil, err
	}
	s, err := store.Spaces.Get(c.Tx, b.SpaceGUID)
	if err != nil {
		return nil, err
	}
	return doc{"guid": s.GUID, "name": s.Name}, nil
}

func (c *call) orgsOfPlan(p *cf.ServicePlan) ([]doc, error) {
	visible, _, err := store.ServicePlanVisibilities.List(c.Tx, store.Query{Where: map[string][]string{"service_plan_guids": {p.GUID}}, Visible: c.Scope})
	if err != nil {
		return nil, err
	}
	orgs, err := store.Orgs.By(c.Tx, "guids", control.GUIDs(visible, func(v *cf.ServicePlanVisibility) string { return v.OrgGUID })...)
	docs := []doc{}
	for _, o := range orgs {
		docs = append(docs, doc{"guid": o.GUID, "name": o.Name})
	}
	return docs, err
}

func showVisibility(c *call) (*response, error) {
	p, err := store.ServicePlans.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	d, err := viewVisibility(c, p, true)
	return &response{body: d}, err
}

type visibilityRequest struct {
	Type          string `json:"type"`
	Organizations change.Field[[]struct {
		GUID *string `json:"guid"`
	}] `json:"organizations"`
}

// faults are 400s here: Cloud Controller has it so.
func (r visibilityRequest) faults() error {
	if !slices.Contains([]string{cf.VisiblePublic, cf.VisibleAdmin, cf.VisibleOrganization}, r.Type) {
		return cf.Errorf(cf.BadRequest, "Bad request: Type must be one of 'public', 'admin', 'organization'")
	}
	given := r.Organizations.Set && !r.Organizations.Null
	switch {
	case r.Type == cf.VisibleOrganization && (!given || len(r.Organizations.V) == 0):
		return cf.Errorf(cf.BadRequest, "Bad request: Organizations can't be blank")
	case r.Type != cf.VisibleOrganization && given && len(r.Organizations.V) > 0:
		return cf.Errorf(cf.BadRequest, "Bad request: Organizations must be blank")
	}
	for _, o := range r.Organizations.V {
		if o.GUID == nil {
			return cf.Errorf(cf.BadRequest, `Bad request: Organizations organizations list must be structured like this: "organizations": [{"guid": "valid-guid"}]`)
		}
	}
	return nil
}

func (r visibilityRequest) orgs() (list []string) {
	for _, o := range r.Organizations.V {
		if !slices.Contains(list, *o.GUID) {
			list = append(list, *o.GUID)
		}
	}
	return list
}

// updateVisibility is a PATCH: the orgs are those of the request.
func updateVisibility(c *call) (*response, error) { return c.setVisibility(false) }

// applyVisibility is a POST: the orgs of the request come to those that are.
func applyVisibility(c *call) (*response, error) { return c.setVisibility(true) }

func (c *call) setVisibility(add bool) (*response, error) {
	var req visibilityRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, err := c.servicePlan()
	if err != nil {
		return nil, err
	}
	if err := req.faults(); err != nil {
		return nil, err
	}
	kind, err := c.Tx.PlanVisibility(p)
	if err != nil {
		return nil, err
	}
	if kind == cf.VisibleSpace {
		return nil, cf.Unprocessable("cannot update plans with visibility type 'space'")
	}
	p.Public = req.Type == cf.VisiblePublic
	if err := store.ServicePlans.Update(c.Tx, p); err != nil {
		return nil, err
	}
	if err := services.SetOrgs(c.Session, p, req.orgs(), add && req.Type == cf.VisibleOrganization); err != nil {
		return nil, err
	}
	request := doc{"type": req.Type}
	if req.Type == cf.VisibleOrganization {
		request["organizations"] = req.Organizations.V
	}
	if err := services.VisibilityEvent(c.Session, audit.ServicePlanVisibilityUpdate, p, "", request); err != nil {
		return nil, err
	}
	d, err := viewVisibility(c, p, !add)
	return &response{body: d}, err
}

func deleteVisibility(c *call) (*response, error) {
	p, err := c.servicePlan()
	if err != nil {
		return nil, err
	}
	kind, err := c.Tx.PlanVisibility(p)
	if err != nil {
		return nil, err
	}
	if kind != cf.VisibleOrganization {
		return nil, cf.Unprocessable("Cannot delete visibilities from non-org-restricted plans")
	}
	org, err := store.Orgs.Get(c.Tx, c.param("org"))
	if err != nil {
		return nil, err
	}
	v, err := store.ServicePlanVisibilities.First(c.Tx, store.Query{Where: map[string][]string{"service_plan_guids": {p.GUID}, "organization_guids": {org.GUID}}})
	if err != nil {
		return nil, err
	}
	if err := store.ServicePlanVisibilities.Delete(c.Tx, v.GUID); err != nil {
		return nil, err
	}
	if err := services.VisibilityEvent(c.Session, audit.ServicePlanVisibilityDelete, p, org.GUID, doc{}); err != nil {
		return nil, err
	}
	return noContent()
}
