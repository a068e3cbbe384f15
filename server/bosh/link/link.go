package link

import "cupola/server/bosh/tree"

// Link is what a job that consumes a link sees of it.
type Link struct {
	// Address leads to all instances that are ready.
	Address    string
	Properties tree.Map    // nested by the dots of their names
	Order      *tree.Order `json:",omitempty"` // in which templates find the keys of Properties; links stored by earlier versions have none
	Instances  []Instance
}

// Instance is one that provides a link.
type Instance struct {
	Name, ID, Address string
	AZ                string // "" for none
	Index             int
	Bootstrap         bool
}
