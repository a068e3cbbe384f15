package api

import "cupola/store/cf"

// listNone lists what nobody can have here yet. The CLI asks for it when it
// shows other things, with whatever filters.
func listNone(c *call) (*response, error) {
	q, err := parseQuery(nil, noRows{})
	if err != nil {
		return nil, err
	}
	return ok(page(c, q, nil, 0, func(*call, *struct{}) doc { return nil }))
}

// missing is the endpoint of one thing of a kind that nobody can have here yet.
func missing(what string) endpoint {
	return inTx(func(*call) (*response, error) { return nil, cf.Errorf(cf.ResourceNotFound, "%s not found", what) })
}
