package api

import (
	"cupola/server/control/services"
	"cupola/store/cf"
)

func viewServiceBroker(c *call, b *cf.ServiceBroker) doc {
	relationships := doc{}
	links := doc{"self": c.link("/v3/service_brokers/%s", b.GUID),
		"service_offerings": c.link("/v3/service_offerings?service_broker_guids=%s", b.GUID)}
	if b.SpaceGUID != "" {
		relationships["space"] = toOne(b.SpaceGUID)
		links["space"] = c.link("/v3/spaces/%s", b.SpaceGUID)
	}
	return with(resource(b.Resource), doc{"name": b.Name, "url": b.URL, "metadata": metadata(b.Metadata), "relationships": relationships, "links": links})
}

var findBroker = byGUID(services.FindBroker)

func createServiceBroker(c *call) (*response, error) {
	var req services.BrokerChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	j, err := services.Register(c.Session, req)
	return underWay(c, j), err
}

func updateServiceBroker(c *call) (*response, error) {
	var req services.BrokerChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Relationships != nil {
		return nil, cf.Unprocessable("Unknown field(s): 'relationships'")
	}
	b, err := findBroker(c)
	if err != nil {
		return nil, err
	}
	j, err := services.UpdateBroker(c.Session, b, req)
	if err != nil || j != nil {
		return underWay(c, j), err
	}
	return ok(viewServiceBroker(c, b))
}
