package store

import "cupola/store/cf"

// NetworkPolicies are the network policies. They go with their apps.
var NetworkPolicies = networkPolicies{&Table[cf.NetworkPolicy]{table{
	name: "network_policies", singular: "Network policy",
	columns: "source, destination, protocol, first_port, last_port",
	fields: fieldsOf(func(v *cf.NetworkPolicy, _ *sealer) []any {
		return []any{&v.Source, &v.Destination, &v.Protocol, &v.FirstPort, &v.LastPort}
	}),
	resource: resourceOf(func(*cf.NetworkPolicy) *cf.Resource { return nil }),
	filters: map[string]string{
		"guids":        "source IN (SELECT value FROM json_each(?)) OR destination IN (SELECT value FROM json_each(?))",
		"sources":      "source",
		"destinations": "destination",
	},
}}}

type networkPolicies struct{ *Table[cf.NetworkPolicy] }

// Add adds a policy. One that is there already stays the only one.
func (networkPolicies) Add(tx *Tx, p cf.NetworkPolicy) error {
	_, err := tx.exec(`INSERT INTO network_policies (source, destination, protocol, first_port, last_port)
		VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, p.Source, p.Destination, p.Protocol, p.FirstPort, p.LastPort)
	return err
}

// Remove removes a policy, if it is there.
func (networkPolicies) Remove(tx *Tx, p cf.NetworkPolicy) error {
	_, err := tx.exec(`DELETE FROM network_policies
		WHERE source = ? AND destination = ? AND protocol = ? AND first_port = ? AND last_port = ?`,
		p.Source, p.Destination, p.Protocol, p.FirstPort, p.LastPort)
	return err
}
