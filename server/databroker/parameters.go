package databroker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

// parameters are what a request can ask of an instance: TLS where its service has it, all others but Content where its service has
// point-in-time recovery.
type parameters struct {
	TLS      string    `json:"tls"`                               // whether it refuses connections without
	Recovery *bool     `json:"point_in_time_recovery"`            // enable or disable it
	Of       string    `json:"restore_from_point_in_time_of"`     // GUID of the instance that a new one is restored from
	Before   time.Time `json:"restore_from_point_in_time_before"` // the time as of which
	Content  string    `json:"restore_from_content"`              // ID of the Content that a new one is made of
}

// restored reports whether an instance is made of the volume of another one.
func (p parameters) restored() bool { return p.Of != "" || p.Content != "" }

// parametersOf reads the parameters of a request; the errors name what is wrong.
func (s service) parametersOf(q request) (p parameters, err error) {
	if len(q.Parameters) == 0 {
		return p, nil
	}
	text, err := json.Marshal(q.Parameters)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	_, recovers := s.engine.(recoverer)
	switch err = d.Decode(&p); {
	case err != nil:
	case p.TLS != "" && (s.tlsPort == 0 || p.TLS != optionalTLS && p.TLS != requiredTLS):
		err = fmt.Errorf("tls %q", p.TLS)
	case !recovers && p.points():
		err = errors.New("point-in-time recovery")
	}
	if err != nil {
		return parameters{}, builtin.Refuse(http.StatusBadRequest, "invalid parameters: %v; %s takes %s", err, s.name, s.accepted())
	}
	if p.Content != "" && p.points() {
		return p, builtin.Refuse(http.StatusBadRequest, "restore_from_content excludes all other parameters but tls")
	}
	if (p.Of == "") != p.Before.IsZero() {
		return p, builtin.Refuse(http.StatusBadRequest, "give both parameters, restore_from_point_in_time_of and restore_from_point_in_time_before, or neither")
	}
	return p, nil
}

// points reports whether the parameters are about point-in-time recovery.
func (p parameters) points() bool { return p.Recovery != nil || p.Of != "" || !p.Before.IsZero() }

// accepted lists the parameters that a service takes.
func (s service) accepted() string {
	var list []string
	if _, recovers := s.engine.(recoverer); recovers {
		list = append(list, "point_in_time_recovery (true or false)", "restore_from_point_in_time_of (a GUID)", "restore_from_point_in_time_before (a time like 2026-11-28T10:00:00Z)")
	}
	if s.tlsPort != 0 {
		list = append(list, fmt.Sprintf("tls (%q or %q)", optionalTLS, requiredTLS))
	}
	if len(list) == 0 {
		return "no parameters"
	}
	return strings.Join(list, ", ")
}

// parametersIn are the parameters that an instance was made with.
func parametersIn(i *cf.DataInstance) (p parameters) {
	s, _, ok := known(i)
	var q request
	if !ok || json.Unmarshal([]byte(i.Request), &q) != nil {
		return p // it was checked when the row was written
	}
	p, _ = s.parametersOf(q)
	return p
}

// checkSource refuses a restore that cannot succeed. What is restored must be of the same space, since the rights of
// the two are the same there, and of the same plan.
func (b *broker) checkSource(ctx context.Context, s service, p plan, q request, want parameters) error {
	if want.Of == "" {
		return nil
	}
	var of *cf.DataInstance
	err := b.Store.Read(ctx, func(tx *store.Tx) error {
		i, err := store.ServiceInstances.Find(tx, want.Of)
		if err == nil && i != nil && i.SpaceGUID == q.SpaceGUID {
			of, err = store.DataInstances.Find(tx, want.Of)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case of == nil || of.Service != s.name || of.Plan != p.name:
		return builtin.Refuse(http.StatusBadRequest, "invalid restore_from_point_in_time_of: the space has no service instance of %s with the plan %s and the GUID %q", s.name, p.name, want.Of)
	case want.Before.After(time.Now()):
		return builtin.Refuse(http.StatusBadRequest, "invalid restore_from_point_in_time_before: %s is in the future", stamp(want.Before))
	}
	points, err := b.points(of)
	if err != nil {
		return err
	}
	_, err = points.base(want.Before)
	if errors.Is(err, errNoPoint) {
		return builtin.Refuse(http.StatusBadRequest, "invalid restore_from_point_in_time_before: %v", err)
	}
	return err
}

// stamp is a time as errors show it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
