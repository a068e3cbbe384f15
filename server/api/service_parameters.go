package api

import (
	"cupola/server/control"
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
func askParameters(find func(c *control.Session, guid string) (instance, binding string, err error)) endpoint {
	return func(c *call) (*response, error) {
		var q ParameterQuery
		err := c.tx(false, func() (err error) {
			q.Actor = c.Who()
			q.InstanceGUID, q.BindingGUID, err = find(c.Session, c.guid())
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
