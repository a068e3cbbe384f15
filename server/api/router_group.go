package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"cupola/server/control/routes"
	"cupola/store/cf"
)

// The routes below are those of Cloud Foundry's routing API, with its words.
const routingAPI = "/routing/"

func viewRouterGroup(g *cf.RouterGroup) doc {
	return doc{"guid": g.GUID, "name": g.Name, "type": g.Type, "reservable_ports": g.Ports}
}

func listRouterGroups(c *call) (*response, error) {
	groups, err := routes.Groups(c.Session)
	if err != nil {
		return nil, err
	}
	if name := c.Request.URL.Query().Get("name"); name != "" {
		groups = slices.DeleteFunc(groups, func(g *cf.RouterGroup) bool { return g.Name != name })
		if len(groups) == 0 {
			return nil, cf.Errorf(cf.ResourceNotFound, "router group '%s' not found", name)
		}
	}
	views := []doc{}
	for _, g := range groups {
		views = append(views, viewRouterGroup(g))
	}
	return ok(views)
}

func readRouterGroup(c *call) (n routes.NewGroup, err error) {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return n, err
	}
	err = json.Unmarshal(body, &n)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return n, cf.Errorf(cf.BadRequest, "Cannot process request: %s must be a string", wrong.Field)
	}
	if err != nil {
		return n, cf.Errorf(cf.BadRequest, "Cannot process request: the body is not JSON")
	}
	return n, nil
}

func createRouterGroup(c *call) (*response, error) {
	n, err := readRouterGroup(c)
	if err != nil {
		return nil, err
	}
	g, made, err := routes.CreateGroup(c.Session, n)
	if err != nil {
		return nil, err
	}
	if !made {
		return ok(viewRouterGroup(g))
	}
	return created(viewRouterGroup(g))
}

func updateRouterGroup(c *call) (*response, error) {
	n, err := readRouterGroup(c)
	if err != nil {
		return nil, err
	}
	g, err := routes.UpdateGroup(c.Session, c.guid(), n)
	if err != nil {
		return nil, err
	}
	return ok(viewRouterGroup(g))
}

func deleteRouterGroup(c *call) (*response, error) {
	if err := routes.DeleteGroup(c.Session, c.guid()); err != nil {
		return nil, err
	}
	return noContent()
}

// routingFailure is an error in the routing API's form. It has one status for who
// is not known and for who may not.
func routingFailure(e *cf.Error) *response {
	status, name, text := faults[e.Kind].status, "ResponseError", e.Detail
	switch e.Kind {
	case cf.NotAuthorized:
		status, name, text = http.StatusUnauthorized, "UnauthorizedError", "You are not authorized to perform the requested action"
	case cf.NotAuthenticated, cf.InvalidAuthToken:
		name = "UnauthorizedError"
	case cf.ResourceNotFound:
		name = "ResourceNotFoundError"
	case cf.BadRequest, cf.MessageParseError:
		name = "ProcessRequestError"
	case cf.DatabaseError, cf.DiskFull, cf.ServiceUnavailable:
		name = "DBCommunicationError"
	}
	return &response{status: status, body: doc{"name": name, "message": text}}
}
