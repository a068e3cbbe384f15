package api

import (
	"cupola/server/control"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// viewVisibility shows who sees a plan. Orgs that the actor does not see are
// left out; with none of them at all, when orgs is false.
func viewVisibility(c *call, p *cf.ServicePlan, orgs bool) (doc, error) {
	kind, err := store.ServicePlans.Visibility(c.Tx, p)
	if err != nil {
		return nil, err
	}
	d := doc{"type": kind}
	switch {
	case kind == cf.VisibleSpace:
		d["space"], err = spaceOfPlan(c, p)
	case kind == cf.VisibleOrganization && orgs:
		d["organizations"], err = orgsOfPlan(c, p)
	}
	return d, err
}

func spaceOfPlan(c *call, p *cf.ServicePlan) (doc, error) {
	o, err := services.OfferFor(c.Session, p)
	if err != nil {
		return nil, err
	}
	s, err := store.Spaces.Get(c.Tx, o.Broker.SpaceGUID)
	if err != nil {
		return nil, err
	}
	return doc{"guid": s.GUID, "name": s.Name}, nil
}

func orgsOfPlan(c *call, p *cf.ServicePlan) ([]doc, error) {
	visible, err := store.ServicePlanVisibilities.Matching(c.Tx, store.Query{Where: map[string][]string{"service_plan_guids": {p.GUID}}, Visible: c.Scope})
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

// updateVisibility is a PATCH: the orgs are those of the request.
func updateVisibility(c *call) (*response, error) { return setVisibility(c, false) }

// applyVisibility is a POST: the orgs of the request come to those that are.
func applyVisibility(c *call) (*response, error) { return setVisibility(c, true) }

func setVisibility(c *call, add bool) (*response, error) {
	var req services.Visibility
	p, err := findPlan(c)
	if err != nil {
		return nil, err
	}
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(body, planVisibility, cf.BadRequest, "Bad request: "); err != nil {
		return nil, err
	}
	c.Asked = control.Audited(body)
	if err := decodeBody(c, body, &req); err != nil {
		return nil, err
	}
	if err := services.SetVisibility(c.Session, p, req, add); err != nil {
		return nil, err
	}
	d, err := viewVisibility(c, p, !add)
	return &response{body: d}, err
}
