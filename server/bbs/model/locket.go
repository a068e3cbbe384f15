package model

import (
	"encoding/json"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// Status is an error as clients of Locket see it: a status of gRPC.
type Status struct {
	Code    int
	Message string
}

// Error is the message.
func (s *Status) Error() string { return s.Message }

// Locket's errors (locket: models/models.go), with the codes of gRPC.
var (
	ErrLockCollision = &Status{6, "lock-collision"}
	ErrLockTTL       = &Status{3, "invalid-ttl"}
	ErrLockOwner     = &Status{3, "invalid-owner"}
	ErrLockNotFound  = &Status{5, "resource-not-found"}
	ErrLockType      = &Status{5, "invalid-type"}
	ErrLockRequest   = &Status{3, "the request is not one message of gRPC without compression"}
	ErrLocket        = &Status{13, "the request failed for an unknown reason"}
)

// Locket's types of what a client holds.
const (
	Lock     = 1
	Presence = 2
)

// lockTypes are their names, which older clients give and newer ones are shown.
var lockTypes = map[int32]string{Lock: "lock", Presence: "presence"}

// LockType is the type of a resource by its code, or else by its name; 0 where
// it is none.
func LockType(code int32, name string) int32 {
	if code != 0 {
		if lockTypes[code] == "" {
			return 0
		}
		return code
	}
	for code, known := range lockTypes {
		if known == name {
			return code
		}
	}
	return 0
}

// LocketResource is a lock or a presence as a message.
func LocketResource(kind int32, key, owner, value string) *bbspb.LocketResource {
	return &bbspb.LocketResource{Key: key, Owner: owner, Value: value, Type: lockTypes[kind], TypeCode: kind}
}

// presence is the value of a cell's presence, as a rep writes it.
type presence struct {
	CellID        string             `json:"cell_id"`
	RepAddress    string             `json:"rep_address"`
	Zone          string             `json:"zone"`
	Capacity      presenceCapacity   `json:"capacity"`
	Providers     []presenceProvider `json:"rootfs_provider_list,omitempty"`
	PlacementTags []string           `json:"placement_tags,omitempty"`
	OptionalTags  []string           `json:"optional_placement_tags,omitempty"`
	RepURL        string             `json:"rep_url"`
	Annotations   map[string]string  `json:"annotations"`
}

type presenceCapacity struct {
	MemoryMB   int `json:"memory_mb"`
	DiskMB     int `json:"disk_mb"`
	Containers int `json:"containers"`
}

type presenceProvider struct {
	Name       string   `json:"name"`
	Properties []string `json:"properties,omitempty"`
}

// CellPresence is the presence of a cell, which owner holds in Locket.
func CellPresence(c lrp.Cell, repURL, owner string) *bbspb.LocketResource {
	p := presence{CellID: c.ID, RepAddress: repURL, RepURL: repURL, Zone: c.Zone, Capacity: presenceCapacity{c.MemoryMB, c.DiskMB, c.Containers},
		PlacementTags: c.RequiredTags, OptionalTags: c.OptionalTags(), Annotations: map[string]string{}}
	for _, provider := range Cell(c, repURL).RootfsProviders {
		p.Providers = append(p.Providers, presenceProvider{provider.Name, provider.Properties})
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return LocketResource(Presence, c.ID, owner, string(text))
}
