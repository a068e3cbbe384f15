package seed

import (
	"encoding/json"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

// session is one of the daemon, which makes rows by the verbs that users have.
func session(tx *store.Tx) *control.Session {
	daemon := authz.NewActor("", "cupola", "system", []string{"cloud_controller.admin"}, nil)
	return &control.Session{Tx: tx, Actor: daemon, Writes: true, Silent: true, Platform: &control.Platform{}}
}

// create calls a verb with a request in JSON.
func create[T, R any](tx *store.Tx, verb func(*control.Session, R) (*T, error), request string) (*T, error) {
	var req R
	if err := json.Unmarshal([]byte(request), &req); err != nil {
		return nil, err
	}
	return verb(session(tx), req)
}

// Quota makes the quota that new orgs get, with the limits of Cloud Foundry's own
// default deployment, when there is no quota.
func Quota(tx *store.Tx) error {
	n, err := store.OrgQuotas.Count(tx, store.Query{})
	if err != nil || n > 0 {
		return err
	}
	_, err = create(tx, orgs.CreateQuota, `{"name": "default",
		"apps": {"total_memory_in_mb": 102400}, "routes": {"total_routes": 1000, "total_reserved_ports": 100}}`)
	return err
}

// securityGroups are Cloud Foundry's default groups: apps reach public networks and
// name servers, and nothing private.
var securityGroups = []string{
	`{"name": "public_networks", "globally_enabled": {"running": true, "staging": true}, "rules": [
		{"protocol": "all", "destination": "0.0.0.0-9.255.255.255"},
		{"protocol": "all", "destination": "11.0.0.0-169.253.255.255"},
		{"protocol": "all", "destination": "169.255.0.0-172.15.255.255"},
		{"protocol": "all", "destination": "172.32.0.0-192.167.255.255"},
		{"protocol": "all", "destination": "192.169.0.0-255.255.255.255"}]}`,
	`{"name": "dns", "globally_enabled": {"running": true, "staging": true}, "rules": [
		{"protocol": "tcp", "destination": "0.0.0.0/0", "ports": "53"},
		{"protocol": "udp", "destination": "0.0.0.0/0", "ports": "53"}]}`,
}

// SecurityGroups makes the default groups in a new database.
func SecurityGroups(tx *store.Tx) error {
	n, err := store.SecurityGroups.Count(tx, store.Query{})
	if err != nil || n > 0 {
		return err
	}
	for _, g := range securityGroups {
		if _, err := create(tx, orgs.CreateSecurityGroup, g); err != nil {
			return err
		}
	}
	return nil
}

// firstPlace makes the org and space that a first `cf push` goes to.
func firstPlace(tx *store.Tx) error {
	if n, err := store.Orgs.Count(tx, store.Query{}); err != nil || n > 0 {
		return err
	}
	org, err := create(tx, orgs.Create, `{"name": "cupola"}`)
	if err != nil {
		return err
	}
	_, err = create(tx, orgs.CreateSpace, `{"name": "dev", "relationships": {"organization": {"data": {"guid": "`+org.GUID+`"}}}}`)
	return err
}

// domains makes the domains of apps, where there are none of their names. Whatever
// domains users have, the daemon starts: so what the verb would refuse is not checked.
func (s *Seeds) domains(tx *store.Tx) error {
	for _, d := range []cf.Domain{{Name: s.Domain}, {Name: internalDomain, Internal: true}} {
		n, err := store.Domains.Count(tx, store.Query{Where: map[string][]string{"names": {d.Name}}})
		if err == nil && n == 0 {
			err = store.Domains.Insert(tx, &d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
