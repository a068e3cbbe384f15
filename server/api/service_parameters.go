package api

import (
	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// recorded is inTx for an endpoint that shows something, and records who looked.
func recorded(h func(*call) (*response, error)) endpoint {
	return func(c *call) (res *response, err error) {
		err = c.tx(true, func() error {
			res, err = h(c)
			return err
		})
		return res, err
	}
}

// askParameters is the endpoint that shows the parameters of what find finds. The
// broker is asked outside of the transaction.
func askParameters(find func(*call) (ParameterQuery, error)) endpoint {
	return func(c *call) (*response, error) {
		var q ParameterQuery
		err := c.tx(false, func() (err error) {
			q, err = find(c)
			q.Actor = c.Who()
			return err
		})
		if err != nil {
			return nil, err
		}
		if c.s.Parameters == nil {
			return nil, cf.Errorf(cf.ServiceParametersUnknown, "This service does not support fetching service instance parameters.")
		}
		found, err := c.s.Parameters(c.Context(), q)
		if err != nil {
			return nil, err
		}
		return ok(orObject(found))
	}
}

// serviceParameters finds which service instance's parameters its broker is
// asked for. It is not enough to see the instance in a space that it is shared
// with.
func serviceParameters(c *call) (q ParameterQuery, err error) {
	i, err := store.ServiceInstances.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return q, err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return q, err
	}
	if !c.Actor.May(authz.SpaceReader, access.At(space)) {
		return q, access.NotAuthorized()
	}
	unknown := cf.Errorf(cf.ServiceParametersUnknown, "This service does not support fetching service instance parameters.")
	switch {
	case i.Type != cf.Managed:
		return q, unknown
	case i.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		return q, cf.Errorf(cf.ResourceNotFound, "Service instance not found")
	}
	o, err := services.OfferOf(c.Session, i)
	switch {
	case err != nil:
		return q, err
	case !o.Offering.InstancesRetrievable:
		return q, unknown
	case i.LastOperation.InProgress():
		return q, cf.Errorf(cf.ServiceBusy, "An operation for service instance %s is in progress.", i.Name)
	}
	return ParameterQuery{InstanceGUID: i.GUID}, nil
}
