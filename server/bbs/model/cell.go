package model

import (
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// Cell is a cell as a message. repURL is where its state is shown.
func Cell(c lrp.Cell, repURL string) *bbspb.CellPresence {
	p := &bbspb.CellPresence{CellId: c.ID, Zone: c.Zone, RepAddress: repURL, RepUrl: repURL, PlacementTags: c.RequiredTags, OptionalPlacementTags: c.OptionalTags(),
		Capacity: &bbspb.CellCapacity{MemoryMb: int32(c.MemoryMB), DiskMb: int32(c.DiskMB), Containers: int32(c.Containers)}}
	if len(c.RootFSes) > 0 {
		p.RootfsProviders = append(p.RootfsProviders, &bbspb.Provider{Name: "preloaded", Properties: c.RootFSes})
	}
	for _, scheme := range c.RootFSProviders {
		p.RootfsProviders = append(p.RootfsProviders, &bbspb.Provider{Name: scheme})
	}
	return p
}
