package kube

import (
	"cmp"
	"fmt"
	"slices"
)

// Object is a Kubernetes object, as YAML and JSON have it.
type Object map[string]any

// doc is a part of an object.
type doc = map[string]any

// Kind is the object's.
func (o Object) Kind() string { return text(o, "kind") }

// Name is the object's.
func (o Object) Name() string { return text(o.metadata(), "name") }

// Namespace returns the object's namespace, or "" for the applier's default.
func (o Object) Namespace() string { return text(o.metadata(), "namespace") }

// Label is a label of the object, or "".
func (o Object) Label(key string) string { return text(child(o.metadata(), "labels"), key) }

// annotation is an annotation of the object, or "".
func (o Object) annotation(key string) string { return text(child(o.metadata(), "annotations"), key) }

// Version is the cluster's of the object, or "".
func (o Object) Version() string { return text(o.metadata(), "resourceVersion") }

// Map is a map at a path, or nil.
func (o Object) Map(path ...string) map[string]any {
	m := doc(o)
	for _, key := range path {
		m = child(m, key)
	}
	return m
}

// Text is a text at a path, or "".
func (o Object) Text(path ...string) string {
	return text(o.Map(path[:len(path)-1]...), path[len(path)-1])
}

// Number is a whole number at a path, or 0.
func (o Object) Number(path ...string) int64 {
	switch n := o.Map(path[:len(path)-1]...)[path[len(path)-1]].(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	return 0
}

// Items are the maps in a list at a path.
func (o Object) Items(path ...string) (all []Object) {
	items, _ := o.Map(path[:len(path)-1]...)[path[len(path)-1]].([]any)
	for _, item := range items {
		if m, ok := item.(doc); ok {
			all = append(all, m)
		}
	}
	return all
}

func (o Object) metadata() doc { return child(o, "metadata") }

// child is a map in a map, or nil.
func child(m doc, key string) doc {
	switch c := m[key].(type) {
	case doc:
		return c
	case map[string]string:
		all := doc{}
		for k, v := range c {
			all[k] = v
		}
		return all
	}
	return nil
}

func text(m doc, key string) string {
	s, _ := m[key].(string)
	return s
}

// order is that in which objects are applied: what others need comes first.
var order = []string{"Secret", "Service", "PersistentVolumeClaim", "StatefulSet", "Deployment", "PodDisruptionBudget", "CronJob", "Job", "HTTPRoute", "Ingress"}

// sorted brings objects into their order, and refuses two of one name.
func sorted(all []Object) ([]Object, error) {
	slices.SortStableFunc(all, func(a, b Object) int {
		return cmp.Or(slices.Index(order, a.Kind())-slices.Index(order, b.Kind()), cmp.Compare(a.Name(), b.Name()))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Kind() == b.Kind() && a.Name() == b.Name() {
			return nil, fmt.Errorf("two objects would both be the %s %s: %s and %s", a.Kind(), a.Name(), a.annotation(sourceKey), b.annotation(sourceKey))
		}
	}
	return all, nil
}

// without drops keys that have nothing to say.
func without(m doc) doc {
	for key, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, key)
		case string:
			if v == "" {
				delete(m, key)
			}
		case doc:
			if len(v) == 0 {
				delete(m, key)
			}
		case []any:
			if len(v) == 0 {
				delete(m, key)
			}
		}
	}
	return m
}

// list is a list of any, as YAML reads one.
func list[T any](all []T) []any {
	out := make([]any, len(all))
	for i, v := range all {
		out[i] = v
	}
	return out
}
