// Package scalingbroker offers the autoscaler in the marketplace, as Cloud Foundry's App Autoscaler
// does: an app that is bound to an instance has the policy of the binding, or the instance's default,
// and credentials with which it submits custom metrics. It speaks the Open Service Broker API 2.17,
// so that the platform treats it as any broker. All that it does is done when it answers.
package scalingbroker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"cupola/runtime/fault"
	"cupola/server/osb/builtin"
	"cupola/store"
)

// The catalog has App Autoscaler's names (its servicebroker/config/catalog.json), and IDs of cupola's
// own, which stay the same for ever.
const (
	Name        = "autoscaler" // of the broker and of its service
	planName    = "autoscaler-free-plan"
	serviceID   = "cupola-autoscaler"
	planID      = serviceID + "-free"
	revision    = "1" // changes with the catalog
	description = "Automatically increase or decrease the number of application instances based on a policy you define."
)

// Config is what a Service is made of.
type Config struct {
	Store *store.Store
	URL   string // where apps submit custom metrics
	Log   *slog.Logger
}

// Service is the broker as a daemon has it. Nil has nothing.
type Service struct {
	broker
	registered *builtin.Broker
}

type broker struct{ Config }

// Open registers the broker. Where another one has its name, there is none.
func Open(ctx context.Context, c Config) (*Service, error) {
	registered, err := builtin.Open(ctx, builtin.Config{Name: Name, Setting: "scaling_broker", Revision: revision, Store: c.Store, Log: c.Log})
	if _, taken := errors.AsType[builtin.NameTaken](err); taken {
		c.Log.WarnContext(ctx, "autoscaler is not in the marketplace", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Service{broker{c}, registered}, nil
}

// Start runs it in a group until ctx ends.
func (s *Service) Start(ctx context.Context, group *fault.Group) {
	if s != nil {
		s.registered.Start(ctx, group, s.handler())
	}
}

// Close closes its listener.
func (s *Service) Close() {
	if s != nil {
		s.registered.Close()
	}
}

// What all of the daemon's brokers have.
type (
	object  = builtin.Object
	answer  = builtin.Answer
	refusal = builtin.Refusal
)

// handler answers the platform, which builtin.Guard let in.
func (b *broker) handler() http.Handler {
	const instance, binding = "/v2/service_instances/{instance}", "/v2/service_instances/{instance}/service_bindings/{binding}"
	return builtin.Routes{
		"GET /v2/catalog":    func(*http.Request) (answer, error) { return catalog(), nil },
		"PUT " + instance:    b.provision,
		"PATCH " + instance:  b.update,
		"GET " + instance:    b.fetch,
		"DELETE " + instance: b.deprovision,
		"PUT " + binding:     b.bind,
		"GET " + binding:     b.fetchBinding,
		"DELETE " + binding:  b.unbind,
	}.Handler(b.Log)
}

func catalog() answer {
	plan := object{"id": planID, "name": planName, "description": "This is the free service plan for the Auto-Scaling service.", "free": true, "bindable": true}
	return answer{Status: http.StatusOK, Body: object{"services": []object{{"id": serviceID, "name": Name, "description": description, "bindable": true, "plan_updateable": false,
		"instances_retrievable": true, "bindings_retrievable": true, "tags": []string{"app-autoscaler"}, "metadata": object{"displayName": "App Autoscaler"}, "plans": []object{plan}}}}}
}
