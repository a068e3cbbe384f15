package control

import (
	"slices"

	"cupola/runtime/guid"
)

// NewGUID returns a new GUID.
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

// Drop is a list without a value; never nil.
func Drop(list []string, value string) []string {
	return Without(list, func(s string) bool { return s == value })
}

// Missing are those of some values that a list does not have; never nil.
func Missing(values, list []string) []string {
	return Without(values, func(s string) bool { return slices.Contains(list, s) })
}

// Union is a list with the values that it did not have yet.
func Union(list, values []string) []string {
	for _, s := range values {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// OrNil is s, or nil for "": audit events and views show null.
func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
