package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Place says where a thing is whose name is not unique.
type Place struct {
	Org   string `help:"The org, if the name is not unique." short:"o"`
	Space string `help:"The space, if the name is not unique." short:"s"`
}

// Find gives the GUID of the one thing with a name: an "app" of "apps".
func (p Place) Find(ctx context.Context, c *Client, what, kind, name string) (guid string, err error) {
	query := url.Values{"names": {Exact(name)}}
	for _, of := range []struct{ what, kind, filter, name string }{{"org", "organizations", "organization_guids", p.Org}, {"space", "spaces", "space_guids", p.Space}} {
		if of.name == "" {
			continue
		}
		found, err := List[struct{ GUID string }](ctx, c, "/v3/"+of.kind+"?"+Filter("names", of.name))
		if err != nil {
			return "", err
		}
		var guids []string
		for _, one := range found {
			guids = append(guids, one.GUID)
		}
		if len(guids) == 0 {
			return "", fmt.Errorf("there is no %s %s", of.what, of.name)
		}
		query.Set(of.filter, strings.Join(guids, ","))
	}
	all, err := List[struct{ GUID string }](ctx, c, "/v3/"+kind+"?"+query.Encode())
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", fmt.Errorf("there is no %s %s", what, name)
	case len(all) > 1:
		return "", fmt.Errorf("there are %d %ss named %s: give --org and --space", len(all), what, name)
	}
	return all[0].GUID, nil
}

// Begin makes a request that a job does, waits for the job, and decodes the answer into
// out (nil: not at all).
func (c *Client) Begin(ctx context.Context, method, path string, body, out any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			return c.stranger()
		}
	}
	return c.Job(ctx, res.Header.Get("Location"))
}
