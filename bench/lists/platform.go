package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"cupola/bench/daemon"
)

const (
	appsOfSpace = 20
	routesOfApp = 5
)

type doc = map[string]any

// platform is a growing number of stopped apps in spaces of one org.
type platform struct {
	*daemon.Client
	org    string
	domain string   // a shared domain's name
	spaces []string // GUIDs
	apps   int
}

// grow adds spaces with their apps, by a manifest for each, until there are
// that many apps.
func (p *platform) grow(ctx context.Context, apps int) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for p.apps < apps {
		var space struct{ GUID string }
		body := doc{"name": fmt.Sprintf("lists-%d", len(p.spaces)), "relationships": doc{"organization": doc{"data": doc{"guid": p.org}}}}
		if err := p.Call(ctx, http.MethodPost, "/v3/spaces", body, &space); err != nil {
			return err
		}
		p.spaces = append(p.spaces, space.GUID)
		some := min(appsOfSpace, apps-p.apps)
		if err := p.Apply(ctx, "/v3/spaces/"+space.GUID+"/actions/apply_manifest", p.manifest(some)); err != nil {
			return err
		}
		p.apps += some
	}
	return nil
}

// prepare makes an org without limits, once.
func (p *platform) prepare(ctx context.Context) error {
	if p.org != "" {
		return nil
	}
	var org, quota struct{ GUID string }
	if err := p.Call(ctx, http.MethodPost, "/v3/organizations", doc{"name": "lists"}, &org); err != nil {
		return err
	}
	p.org = org.GUID
	body := doc{"name": "lists", "relationships": doc{"organizations": doc{"data": []doc{{"guid": p.org}}}}}
	if err := p.Call(ctx, http.MethodPost, "/v3/organization_quotas", body, &quota); err != nil {
		return err
	}
	var domain struct{ Name string }
	if err := p.Call(ctx, http.MethodGet, "/v3/organizations/"+p.org+"/domains/default", nil, &domain); err != nil {
		return err
	}
	p.domain = domain.Name
	return nil
}

// manifest is that of the next apps.
func (p *platform) manifest(count int) string {
	var b strings.Builder
	b.WriteString("applications:\n")
	for n := range count {
		name := fmt.Sprintf("list-%d", p.apps+n)
		fmt.Fprintf(&b, "- name: %s\n  memory: 64M\n  routes:\n", name)
		for r := range routesOfApp {
			fmt.Fprintf(&b, "  - route: %s-%d.%s\n", name, r, p.domain)
		}
	}
	return b.String()
}

// lists are what is measured.
func (p *platform) lists() []list {
	space := url.QueryEscape(p.spaces[0])
	return []list{
		{"apps", "/v3/apps?per_page=5000"},
		{"apps, with spaces and orgs", "/v3/apps?per_page=5000&include=space.organization"},
		{"processes", "/v3/processes?per_page=5000"},
		{"processes, with their instances", "/v3/processes?per_page=5000&embed=process_instances"},
		{"routes", "/v3/routes?per_page=5000"},
		{"spaces", "/v3/spaces?per_page=5000"},
		{"apps of one space", "/v3/apps?per_page=5000&space_guids=" + space},
		{"routes of one space", "/v3/routes?per_page=5000&space_guids=" + space},
	}
}
