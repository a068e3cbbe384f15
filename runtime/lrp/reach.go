package lrp

// Reach is what containers may reach from now on, while they run.
type Reach struct {
	Egress   map[string][]EgressRule // by EgressGroup
	Policies []NetworkPolicy
}

// NetworkPolicy lets the containers of one PolicyGroup connect to those of
// another.
type NetworkPolicy struct {
	Source, Destination string
	Protocol            string // tcp or udp
	FirstPort, LastPort uint16 // both included
}
