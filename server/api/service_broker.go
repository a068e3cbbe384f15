package api

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
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

// brokerRequest is a request to register a service broker, or to change one.
type brokerRequest struct {
	Name           change.Field[string]          `json:"name"`
	URL            change.Field[string]          `json:"url"`
	Authentication change.Field[json.RawMessage] `json:"authentication"`
	Metadata       *change.Metadata              `json:"metadata"`
	Relationships  *struct {
		Space *ref `json:"space"`
	} `json:"relationships"`
}

func (r brokerRequest) Validate() []string {
	messages := control.Must(!r.Name.Set || r.Name.Null || r.Name.V != "", "Name must not be empty string")
	if r.URL.Set && !r.URL.Null {
		messages = append(messages, brokerURLFaults(r.URL.V)...)
	}
	if r.Authentication.Set && !r.Authentication.Null {
		_, faults := r.credentials()
		messages = append(messages, faults...)
	}
	return messages
}

// missing are the faults of a request to register a broker that a request to
// change one does not have.
func (r brokerRequest) missing() []string {
	messages := control.Must(r.Name.Set && !r.Name.Null, "Name must be a string",
		r.URL.Set && !r.URL.Null, "Url must be a string, Url '' must be a valid url",
		r.Authentication.Set && !r.Authentication.Null, "Authentication must be an object")
	if r.Relationships != nil && r.space() == "" {
		messages = append(messages, `Relationships Space must be structured like this: "space: {"data": {"guid": "valid-guid"}}"`)
	}
	return messages
}

func (r brokerRequest) space() string {
	if r.Relationships == nil || r.Relationships.Space == nil {
		return ""
	}
	return r.Relationships.Space.guid()
}

func brokerURLFaults(raw string) []string {
	u, err := url.Parse(raw)
	valid := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if !valid {
		return []string{"Url '" + raw + "' must be a valid url"}
	}
	return control.Must(u.User == nil, "Url must not contain authentication")
}

// basic are the credentials of basic authentication.
type basic struct{ Username, Password string }

// credentials reads "authentication", whose faults Cloud Controller words by
// hand.
func (r brokerRequest) credentials() (b basic, faults []string) {
	var auth map[string]json.RawMessage
	if json.Unmarshal(r.Authentication.V, &auth) != nil || auth == nil {
		return b, []string{"Authentication must be an object"}
	}
	var kind string
	if json.Unmarshal(auth["type"], &kind) != nil || kind != "basic" {
		faults = append(faults, `Authentication authentication.type must be one of ["basic"]`)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(auth["credentials"], &fields) != nil || fields == nil {
		return b, append(faults, "Authentication must be an object")
	}
	var names, why []string
	for _, f := range []struct {
		name string
		to   *string
	}{{"username", &b.Username}, {"password", &b.Password}} {
		what := sentence(f.name)
		var text string
		if err := json.Unmarshal(fields[f.name], &text); err != nil || string(fields[f.name]) == "null" {
			why = append(why, `"`+what+` must be a string"`)
		}
		if strings.TrimSpace(text) == "" {
			why = append(why, `"`+what+` can't be blank"`)
			names = append(names, `"`+f.name+`"`)
		}
		*f.to = text
	}
	if len(names) > 0 {
		faults = append(faults, "Authentication Field(s) ["+strings.Join(names, ", ")+"] must be valid: ["+strings.Join(why, ", ")+"]")
	}
	return b, faults
}

// audited is the request as audit events show it: without the password.
func (r brokerRequest) audited() doc {
	d := doc{}
	if r.Name.Set {
		d["name"] = r.Name.V
	}
	if r.URL.Set {
		d["url"] = r.URL.V
	}
	if r.Authentication.Set {
		b, _ := r.credentials() // was found right
		d["authentication"] = doc{"type": "basic", "credentials": doc{"username": b.Username, "password": "[PRIVATE DATA HIDDEN]"}}
	}
	if r.space() != "" {
		d["relationships"] = doc{"space": toOne(r.space())}
	}
	return doc{"request": d}
}

func createServiceBroker(c *call) (*response, error) {
	var req brokerRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := control.Invalid(req.missing()); err != nil {
		return nil, err
	}
	if err := c.mayRegister(req.space()); err != nil {
		return nil, err
	}
	login, _ := req.credentials() // was found right
	b := &cf.ServiceBroker{Name: req.Name.V, URL: req.URL.V, Username: login.Username, Password: login.Password, SpaceGUID: req.space(), State: cf.BrokerSynchronizing}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	err := store.ServiceBrokers.Insert(c.Tx, b)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("Name must be unique")
	}
	if err != nil {
		return nil, err
	}
	if err := services.BrokerEvent(c.Session, audit.ServiceBrokerCreate, b, req.audited()); err != nil {
		return nil, err
	}
	return c.brokerJob(cf.JobSyncBroker, b, cf.ServiceWork{Actor: c.Who()})
}

// mayRegister checks the rule for a broker of the whole platform, or of a space
// that the actor has to see.
func (c *call) mayRegister(space string) error {
	if space == "" {
		return c.PermitAdmin()
	}
	if _, err := store.Spaces.Visible(c.Tx, space, c.Scope); err != nil {
		return control.Unprocessable(err, "Invalid space. Ensure that the space exists and you have access to it.")
	}
	if err := c.Feature("space_scoped_private_broker_creation"); err != nil {
		return err
	}
	_, err := c.InSpace(space)
	return err
}

// brokerJob is a 202 with a job that the loop of broker operations does.
func (c *call) brokerJob(operation string, b *cf.ServiceBroker, input any) (*response, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return c.job(&cf.Job{Operation: operation, ResourceGUID: b.GUID, ResourceType: "service_brokers", State: cf.JobProcessing, Input: string(text)})
}

// serviceBroker is the broker of {guid}, if the actor sees it and satisfies the
// rule.
func (c *call) serviceBroker() (*cf.ServiceBroker, error) {
	b, err := store.ServiceBrokers.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	if b.SpaceGUID == "" {
		if c.Scope != nil {
			return nil, cf.Errorf(cf.ResourceNotFound, "Service broker not found")
		}
		return b, c.PermitAdmin()
	}
	if _, err := store.Spaces.Visible(c.Tx, b.SpaceGUID, c.Scope); err != nil {
		return nil, cf.Errorf(cf.ResourceNotFound, "Service broker not found")
	}
	_, err = c.InSpace(b.SpaceGUID)
	return b, err
}

func updateServiceBroker(c *call) (*response, error) {
	var req brokerRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Relationships != nil {
		return nil, cf.Unprocessable("Unknown field(s): 'relationships'")
	}
	b, err := c.serviceBroker()
	if err != nil {
		return nil, err
	}
	changed := b.Metadata
	if err := req.Metadata.Apply(&changed); err != nil {
		return nil, err
	}
	if !req.Name.Set && !req.URL.Set && !req.Authentication.Set {
		b.Metadata = changed
		if err := store.ServiceBrokers.Update(c.Tx, b); err != nil {
			return nil, err
		}
		return ok(viewServiceBroker(c, b))
	}
	update := cf.BrokerUpdate{Before: b.State, Actor: c.Who()}
	if req.Metadata != nil {
		update.Metadata = &changed
	}
	return c.changeBroker(b, req, update)
}

// changeBroker has the loop change a broker: its catalog is read first.
func (c *call) changeBroker(b *cf.ServiceBroker, req brokerRequest, update cf.BrokerUpdate) (*response, error) {
	if req.Name.Set && !req.Name.Null {
		update.Name = &req.Name.V
		same, err := store.ServiceBrokers.By(c.Tx, "names", req.Name.V)
		if err != nil {
			return nil, err
		}
		if len(same) > 0 && same[0].GUID != b.GUID {
			return nil, cf.Unprocessable("Name must be unique")
		}
	}
	if b.Busy() {
		return nil, cf.Unprocessable("Cannot update a broker when other operation is already in progress")
	}
	if req.URL.Set && !req.URL.Null {
		update.URL = &req.URL.V
	}
	if req.Authentication.Set && !req.Authentication.Null {
		login, _ := req.credentials() // was found right
		update.Username, update.Password = &login.Username, &login.Password
	}
	b.State = cf.BrokerSynchronizing
	if err := store.ServiceBrokers.Update(c.Tx, b); err != nil {
		return nil, err
	}
	if err := services.BrokerEvent(c.Session, audit.ServiceBrokerUpdate, b, req.audited()); err != nil {
		return nil, err
	}
	return c.brokerJob(cf.JobUpdateBroker, b, update)
}

func deleteServiceBroker(c *call) (*response, error) {
	b, err := c.serviceBroker()
	if err != nil {
		return nil, err
	}
	plans, err := store.ServicePlans.By(c.Tx, "service_broker_guids", b.GUID)
	if err != nil {
		return nil, err
	}
	n, err := store.ServiceInstances.Count(c.Tx, store.Query{Where: map[string][]string{
		"service_plan_guids": control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.GUID })}})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, cf.Errorf(cf.BrokerNotRemovable, "Can not remove brokers that have associated service instances: %s", b.Name)
	}
	if err := services.RemoveBroker(c.Session, b); err != nil {
		return nil, err
	}
	return c.accepted("service_broker.delete", "service_brokers", b.GUID)
}
