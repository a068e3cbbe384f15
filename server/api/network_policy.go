package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cupola/server/control"
	"cupola/server/control/policies"
	"cupola/store/cf"
)

// The routes below are those of Cloud Foundry's policy server, with its words.
const policyServer = "/networking/"

type policyDocument struct {
	Total    int            `json:"total_policies"`
	Policies []policyEntity `json:"policies"`
}

type policyEntity struct {
	Source struct {
		ID  string `json:"id"`
		Tag string `json:"tag,omitempty"`
	} `json:"source"`
	Destination struct {
		ID       string `json:"id"`
		Tag      string `json:"tag,omitempty"`
		Protocol string `json:"protocol"`
		Ports    struct {
			Start int `json:"start"`
			End   int `json:"end"`
		} `json:"ports"`
	} `json:"destination"`
}

func (e policyEntity) policy() cf.NetworkPolicy {
	to := e.Destination
	return cf.NetworkPolicy{Source: e.Source.ID, Destination: to.ID, Protocol: to.Protocol, FirstPort: to.Ports.Start, LastPort: to.Ports.End}
}

func viewPolicy(p *cf.NetworkPolicy) (e policyEntity) {
	e.Source.ID, e.Destination.ID, e.Destination.Protocol = p.Source, p.Destination, p.Protocol
	e.Destination.Ports.Start, e.Destination.Ports.End = p.FirstPort, p.LastPort
	return e
}

// fault is the first thing that the policy server finds wrong.
func (e policyEntity) fault() string {
	ports := e.Destination.Ports
	switch {
	case e.Source.ID == "":
		return "missing source id"
	case e.Destination.ID == "":
		return "missing destination id"
	case e.Destination.Protocol != "udp" && e.Destination.Protocol != "tcp":
		return "invalid destination protocol, specify either udp or tcp"
	case ports.Start > ports.End:
		return fmt.Sprintf("invalid port range %d-%d, start must be less than or equal to end", ports.Start, ports.End)
	case ports.Start < 0:
		return fmt.Sprintf("invalid start port %d, must be in range 1-65535", ports.Start)
	case ports.Start == 0:
		return "missing start port"
	case ports.End > 65535:
		return fmt.Sprintf("invalid end port %d, must be in range 1-65535", ports.End)
	case e.Source.Tag != "" || e.Destination.Tag != "":
		return "tags may not be specified"
	}
	return ""
}

// readPolicies reads the body.
func readPolicies(c *call) (list []cf.NetworkPolicy, err error) {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return nil, err
	}
	var d policyDocument
	err = json.Unmarshal(body, &d)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s must be %s", cmp.Or(wrong.Field, "the body"), typeName(wrong.Type))
	}
	if err != nil {
		return nil, cf.Errorf(cf.BadRequest, "mapper: unmarshal json: %s", err)
	}
	fault := ""
	if len(d.Policies) == 0 {
		fault = "missing policies"
	}
	for _, e := range d.Policies {
		if fault == "" {
			fault = e.fault()
		}
		list = append(list, e.policy())
	}
	if fault != "" {
		return nil, cf.Errorf(cf.BadRequest, "mapper: validate policies: %s", fault)
	}
	return list, nil
}

func listPolicies(c *call) (*response, error) {
	query := c.Request.URL.Query()
	where := map[string][]string{}
	for _, f := range []struct{ parameter, filter string }{{"id", "guids"}, {"source_id", "sources"}, {"dest_id", "destinations"}} {
		if query.Has(f.parameter) && where["guids"] == nil {
			where[f.filter] = strings.Split(query.Get(f.parameter), ",")
		}
	}
	rows, err := policies.List(c.Session, where)
	if err != nil {
		return nil, err
	}
	d := policyDocument{Policies: []policyEntity{}}
	for _, p := range rows {
		d.Policies = append(d.Policies, viewPolicy(p))
	}
	d.Total = len(d.Policies)
	return ok(d)
}

// changePolicies adds or removes policies, as the verb does.
func changePolicies(verb func(*control.Session, []cf.NetworkPolicy) error) endpoint {
	return func(c *call) (*response, error) {
		list, err := readPolicies(c)
		if err != nil {
			return nil, err
		}
		if err := verb(c.Session, list); err != nil {
			return nil, err
		}
		return ok(doc{})
	}
}

// policyFailure is an error as the policy server shows it.
func policyFailure(e *cf.Error) *response {
	res := &response{status: faults[e.Kind].status, body: doc{"error": e.Detail}}
	switch e.Kind {
	case cf.NotAuthenticated:
		res.body = doc{"error": "missing authorization header"}
	case cf.InvalidAuthToken:
		res.body = doc{"error": "failed to verify token with uaa"}
	}
	if res.status == http.StatusUnauthorized {
		res.header = http.Header{"Www-Authenticate": {"Bearer"}}
	}
	return res
}
