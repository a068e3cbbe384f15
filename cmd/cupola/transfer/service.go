package transfer

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"cupola/cmd/cupola/capi"
)

// instance is a service instance as far as it can be copied.
type instance struct {
	GUID, Name, Type string
	Tags             []string      `json:"tags,omitempty"`
	SyslogDrainURL   string        `json:"syslog_drain_url,omitempty"`
	RouteServiceURL  string        `json:"route_service_url,omitempty"`
	Metadata         capi.Doc      `json:"metadata,omitempty"`
	LastOperation    lastOperation `json:"last_operation"`
}

type lastOperation struct{ Type, State string }

const userProvided = "user-provided"

// services creates the user-provided services that apps of a space need, or all of them if all apps are copied; out of a backup also those of
// the built-in broker. It gives the names of those that are there then.
func (c *copier) services(ctx context.Context, space named, to place, apps []app) (map[string]bool, error) {
	there, err := c.servicesThere(ctx, to)
	if err != nil {
		return nil, err
	}
	all, err := capi.List[instance](ctx, c.from, "/v3/service_instances?"+url.Values{"space_guids": {space.GUID}}.Encode())
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if there[s.Name] || len(c.App) > 0 && !bound(apps, s.Name) {
			continue
		}
		switch {
		case s.Type == userProvided:
			there[s.Name] = true
			if err := c.service(ctx, s, to); err != nil {
				return nil, fmt.Errorf("copy service %s: %w", s.Name, err)
			}
		case c.restore != nil:
			if there[s.Name], err = c.restoreService(ctx, s, to); err != nil {
				return nil, err
			}
		default:
			c.show.Step("service", "%s is not copied: it is of a broker; create one of that name there, and its data, then run the command again", s.Name)
		}
	}
	return there, nil
}

// servicesThere are the names of the services in a space there.
func (c *copier) servicesThere(ctx context.Context, to place) (map[string]bool, error) {
	there := map[string]bool{}
	if to.space.GUID == "" {
		return there, nil
	}
	found, err := capi.List[instance](ctx, c.to, "/v3/service_instances?"+url.Values{"space_guids": {to.space.GUID}}.Encode())
	for _, s := range found {
		there[s.Name] = true
		if c.restore != nil && err == nil {
			there[s.Name], err = c.made(ctx, s)
		}
	}
	return there, err
}

// service creates a user-provided service like s.
func (c *copier) service(ctx context.Context, s instance, to place) error {
	if c.DryRun {
		c.show.Step("service", "%s would be created", s.Name)
		return nil
	}
	credentials := capi.Doc{}
	if err := c.from.Call(ctx, http.MethodGet, "/v3/service_instances/"+s.GUID+"/credentials", nil, &credentials); err != nil {
		return err
	}
	body := capi.Doc{"type": userProvided, "name": s.Name, "credentials": credentials, "relationships": capi.Doc{"space": capi.ToOne(to.space.GUID)}}
	for name, value := range map[string]string{"syslog_drain_url": s.SyslogDrainURL, "route_service_url": s.RouteServiceURL} {
		if value != "" {
			body[name] = value
		}
	}
	if len(s.Tags) > 0 {
		body["tags"] = s.Tags
	}
	if len(s.Metadata) > 0 {
		body["metadata"] = s.Metadata
	}
	if err := c.to.Call(ctx, http.MethodPost, "/v3/service_instances", body, nil); err != nil {
		return err
	}
	c.show.Step("service", "%s created", s.Name)
	return nil
}

// bound reports whether an app is bound to the service.
func bound(apps []app, service string) bool {
	for _, a := range apps {
		for _, s := range list(a.manifest["services"]) {
			if serviceName(s) == service {
				return true
			}
		}
	}
	return false
}

// serviceName is that of a binding in a manifest: the name, or a map with it.
func serviceName(binding any) string {
	if m, ok := binding.(map[string]any); ok {
		binding = m["name"]
	}
	name, _ := binding.(string)
	return name
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}
