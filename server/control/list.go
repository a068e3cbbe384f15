package control

import "cupola/runtime/guid"

// NewGUID is a GUID for a new thing.
func NewGUID() string { return guid.New() }

// GUIDs are those that the rows have, or name.
func GUIDs[T any](rows []*T, guid func(*T) string) (list []string) {
	for _, r := range rows {
		list = append(list, guid(r))
	}
	return list
}

// Without is a list without the values that are dropped; never nil.
func Without[T any](list []T, drop func(T) bool) []T {
	kept := []T{}
	for _, v := range list {
		if !drop(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// OrNil is s, or nil for "": audit events and views show null.
func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
