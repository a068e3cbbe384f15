package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cupola/server"
)

// apiFlags say where a daemon's API is, and who calls it.
type apiFlags struct {
	daemonFlags
	API      string `help:"The daemon's API." default:"http://localhost:8080" env:"CUPOLA_API" placeholder:"URL"`
	User     string `help:"Whom to log in as." default:"admin" env:"CUPOLA_USER"`
	Password string `help:"The user's password; the admin's is read from the data directory when not given." env:"CUPOLA_PASSWORD"`
}

func (f *apiFlags) login(ctx context.Context) (*client, error) {
	password := f.Password
	if password == "" {
		var err error
		if password, err = server.AdminPassword(f.DataDir); err != nil {
			return nil, errors.New("no password: give --password or CUPOLA_PASSWORD, or run it as root on the daemon's machine")
		}
	}
	return login(ctx, f.API, f.User, password)
}

// client makes calls of the v3 API.
type client struct {
	api   string // base URL
	token string
	http  *http.Client
}

// userAgent makes the daemon hold its answers until there is news.
const userAgent = "cupola/1"

type doc = map[string]any

// login gets a token with a user's password.
func login(ctx context.Context, api, user, password string) (*client, error) {
	c := &client{api: strings.TrimSuffix(api, "/"), http: &http.Client{}}
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, "POST", c.api+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("cf", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := c.do(req, &answer); err != nil {
		return nil, fmt.Errorf("log in as %s at %s: %w", user, c.api, err)
	}
	c.token = answer.Token
	return c, nil
}

// call makes a request with a JSON body (nil: none) and decodes the answer
// into out (nil: not at all).
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url(path), r)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.do(req, out)
}

func (c *client) url(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return c.api + path
}

func (c *client) do(req *http.Request, out any) error {
	res, err := c.send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// send sends a request; an answer of 400 and above becomes an error with the
// server's words.
func (c *client) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", userAgent)
	if c.token != "" {
		req.Header.Set("Authorization", "bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, apiError(res)
}

func apiError(res *http.Response) error {
	var body struct {
		Errors []struct {
			Detail string `json:"detail"`
		} `json:"errors"`
		Description string `json:"error_description"`
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if json.Unmarshal(text, &body) != nil || len(body.Errors) == 0 && body.Description == "" {
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
	}
	if body.Description != "" {
		return errors.New(body.Description)
	}
	var details []string
	for _, e := range body.Errors {
		details = append(details, e.Detail)
	}
	return errors.New(strings.Join(details, "; "))
}

// first gives the GUID of the one resource of a list.
func (c *client) first(ctx context.Context, what, path string) (string, error) {
	var list struct {
		Resources []struct {
			GUID string `json:"guid"`
		} `json:"resources"`
	}
	if err := c.call(ctx, "GET", path, nil, &list); err != nil {
		return "", err
	}
	if len(list.Resources) == 0 {
		return "", fmt.Errorf("there is no %s", what)
	}
	return list.Resources[0].GUID, nil
}

// list gives all resources of a list.
func list[T any](ctx context.Context, c *client, path string) (all []T, err error) {
	for path != "" {
		var page struct {
			Pagination struct{ Next struct{ Href string } }
			Resources  []T
		}
		if err := c.call(ctx, "GET", path, nil, &page); err != nil {
			return nil, err
		}
		all, path = append(all, page.Resources...), page.Pagination.Next.Href
	}
	return all, nil
}

// toOne is a relationship as requests write it.
func toOne(guid string) doc { return doc{"data": doc{"guid": guid}} }

// stage makes a droplet of a package, and waits for it.
func stage(ctx context.Context, c *client, pkg string) (droplet string, err error) {
	var b struct {
		GUID, State string
		Error       string
		Droplet     struct{ GUID string }
	}
	if err := c.call(ctx, "POST", "/v3/builds", doc{"package": doc{"guid": pkg}}, &b); err != nil {
		return "", err
	}
	for b.State == "STAGING" {
		if err := c.call(ctx, "GET", "/v3/builds/"+b.GUID, nil, &b); err != nil {
			return "", err
		}
	}
	if b.State != "STAGED" {
		return "", fmt.Errorf("staging failed: %s", b.Error)
	}
	return b.Droplet.GUID, nil
}

// job waits for the job of a 202.
func (c *client) job(ctx context.Context, location string) error {
	for {
		var j struct {
			State  string
			Errors []struct{ Detail string }
		}
		if err := c.call(ctx, "GET", location, nil, &j); err != nil {
			return err
		}
		switch j.State {
		case "COMPLETE":
			return nil
		case "FAILED":
			var details []string
			for _, e := range j.Errors {
				details = append(details, e.Detail)
			}
			return errors.New(strings.Join(details, "; "))
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
