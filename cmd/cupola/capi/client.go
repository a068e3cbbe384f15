// Package capi is a client of the daemon's v3 API.
package capi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/datadir"
	"cupola/server/seed"
)

// Flags say where a daemon's API is, and who calls it.
type Flags struct {
	command.DaemonFlags
	API      string `help:"The daemon's API URL; by default that of the daemon of --data-dir." env:"CUPOLA_API" placeholder:"URL"`
	User     string `help:"The user to log in as." default:"admin" env:"CUPOLA_USER"`
	Password string `help:"The user's password; by default the admin password in the data directory." env:"CUPOLA_PASSWORD"`
}

// usualAPI is the API's address with the default flags of a daemon.
const usualAPI = "http://localhost:8080"

// Login logs in to the API.
func (f *Flags) Login(ctx context.Context) (*Client, error) {
	api, err := f.Address()
	if err != nil {
		return nil, err
	}
	password := f.Password
	if password == "" {
		if password, err = f.FindPassword(); err != nil {
			return nil, err
		}
	}
	return Login(ctx, api, f.User, password)
}

// Address is where the API is. The admin's password of a data directory is for
// the daemon of that directory alone, so who reads it has to find that one.
func (f *Flags) Address() (string, error) {
	if f.API != "" {
		if u, err := url.Parse(f.API); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("invalid --api %q: give a URL like %s", f.API, usualAPI)
		}
		return f.API, nil
	}
	if f.Password == "" {
		if err := datadir.CheckRuns(f.DataDir); err != nil {
			return "", err
		}
	}
	api, err := datadir.APIOf(f.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.DataDir == datadir.Default:
		return usualAPI, nil // one of another machine, or of another data directory
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s has no daemon yet: start one with 'sudo cupola serve --data-dir %s', or give its API URL with --api", f.DataDir, f.DataDir)
	}
	return api, err
}

// FindPassword reads the admin password in the data directory, which root alone may.
func (f *Flags) FindPassword() (string, error) {
	if f.User != "admin" {
		return "", fmt.Errorf("no password for %s: give --password or CUPOLA_PASSWORD", f.User)
	}
	password, err := seed.AdminPassword(f.DataDir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", errors.New("no password: give --password or CUPOLA_PASSWORD, or run with sudo (only root may read the admin password)")
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("no password: %s has no daemon yet; start one with 'sudo cupola serve', or give --data-dir or --password", f.DataDir)
	}
	return password, err
}

// Client makes calls of the v3 API.
type Client struct {
	API   string // base URL
	Token string
	HTTP  *http.Client

	session *session // nil: no other token can be had
}

// session replaces the token of a client, and of its copies, when it has expired.
type session struct {
	first string // the token that the client has
	login func(context.Context) (*Client, error)

	mu     sync.Mutex
	newest string
}

// UserAgent makes the daemon hold its answers until there is news.
const UserAgent = "cupola/1"

// Doc is a JSON object.
type Doc = map[string]any

// Login gets a token with a user's password.
func Login(ctx context.Context, api, user, password string) (*Client, error) {
	c := &Client{API: strings.TrimSuffix(api, "/"), HTTP: &http.Client{}}
	return LoginAt(ctx, c, c.API, user, password)
}

// LoginAt gives a client like c that has a token, which the UAA at a URL gives for a
// user's password.
func LoginAt(ctx context.Context, like *Client, uaa, user, password string) (*Client, error) {
	c := &Client{API: like.API, HTTP: like.HTTP}
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, "POST", strings.TrimSuffix(uaa, "/")+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("cf", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	err = c.Do(req, &answer)
	switch _, unreached := errors.AsType[Unreached](err); {
	case unreached:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("log in as %s at %s: %w", user, c.API, err)
	case answer.Token == "":
		return nil, c.stranger()
	}
	c.Token = answer.Token
	c.session = &session{first: c.Token, newest: c.Token, login: func(ctx context.Context) (*Client, error) { return LoginAt(ctx, like, uaa, user, password) }}
	return c, nil
}

// Call makes a request with a JSON body (nil: none) and decodes the answer
// into out (nil: not at all).
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return c.Do(req, out)
}

// Download returns the content that a path has. Close it.
func (c *Client) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Send(req)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL(path), r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// URL returns the URL of a path; a URL stays as it is.
func (c *Client) URL(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return c.API + path
}

// Do makes a request and decodes the answer into out (nil: not at all).
func (c *Client) Do(req *http.Request, out any) error {
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil && req.Context().Err() == nil {
		return c.stranger()
	}
	return req.Context().Err()
}

// Send sends a request; an answer of 400 and above becomes an error with the
// server's words. If the token has expired, Send logs in again: a task may take
// longer than a token is valid.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	token := c.token()
	res, err := c.send(req, token)
	if err == nil && res.StatusCode == http.StatusUnauthorized && (req.Body == nil || req.GetBody != nil) && c.renew(req.Context(), token) {
		res.Body.Close()
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		res, err = c.send(req, c.token())
	}
	if err != nil {
		return nil, c.unreached(err)
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, apiError(res)
}

func (c *Client) send(req *http.Request, token string) (*http.Response, error) {
	req.Header.Set("User-Agent", UserAgent)
	if token != "" {
		req.Header.Set("Authorization", "bearer "+token)
	}
	return c.HTTP.Do(req)
}

func (c *Client) token() string {
	s := c.session
	if s == nil || c.Token != s.first {
		return c.Token
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// renew replaces the token that was refused, and reports whether there is another one.
func (c *Client) renew(ctx context.Context, refused string) bool {
	s := c.session
	if s == nil || c.Token != s.first {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != refused {
		return true
	}
	again, err := s.login(ctx)
	if err != nil {
		return false
	}
	s.newest = again.Token
	return true
}

// Unreached is an error of an API that gave no answer, or a stranger's. It names
// the API.
type Unreached struct{ error }

func (c *Client) stranger() error {
	return Unreached{fmt.Errorf("%s is not cupola's API: give its URL with --api", c.API)}
}

func (c *Client) unreached(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Unreached{fmt.Errorf("nothing listens at %s: start a daemon with 'sudo cupola serve', or give its API URL with --api", c.API)}
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return Unreached{fmt.Errorf("this machine does not trust the certificate of %s: trust the daemon's CA with 'sudo cupola trust', or with SSL_CERT_FILE=<data-dir>/ca.pem", c.API)}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its URL is that of one call
	}
	return Unreached{fmt.Errorf("call %s: %w", c.API, err)}
}

func apiError(res *http.Response) error {
	var body struct {
		Errors []struct {
			Detail string `json:"detail"`
		} `json:"errors"`
		Description string `json:"error_description"`
		Message     string // of the log cache
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	err := json.Unmarshal(text, &body)
	said := cmp.Or(body.Description, body.Message)
	switch {
	case err != nil, len(body.Errors) == 0 && said == "":
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
	case said != "":
		return errors.New(said)
	}
	var details []string
	for _, e := range body.Errors {
		details = append(details, e.Detail)
	}
	return errors.New(strings.Join(details, "; "))
}

// First gives the GUID of the one resource of a list.
func (c *Client) First(ctx context.Context, what, path string) (string, error) {
	var list struct {
		Resources []struct {
			GUID string `json:"guid"`
		} `json:"resources"`
	}
	if err := c.Call(ctx, "GET", path, nil, &list); err != nil {
		return "", err
	}
	if len(list.Resources) == 0 {
		return "", fmt.Errorf("there is no %s", what)
	}
	return list.Resources[0].GUID, nil
}

// List gives all resources of a list.
func List[T any](ctx context.Context, c *Client, path string) (all []T, err error) {
	for path != "" {
		var page struct {
			Pagination struct{ Next struct{ Href string } }
			Resources  []T
		}
		if err := c.Call(ctx, "GET", path, nil, &page); err != nil {
			return nil, err
		}
		all, path = append(all, page.Resources...), page.Pagination.Next.Href
	}
	return all, nil
}

// ToOne is a relationship as requests write it.
func ToOne(guid string) Doc { return Doc{"data": Doc{"guid": guid}} }

type build struct {
	GUID, State string
	Error       string
	Droplet     struct{ GUID string }
}

// Stage makes a droplet of a package, and waits for it.
func Stage(ctx context.Context, c *Client, pkg string) (droplet string, err error) {
	var b build
	if err := c.Call(ctx, "POST", "/v3/builds", Doc{"package": Doc{"guid": pkg}}, &b); err != nil {
		return "", err
	}
	if err := b.await(ctx, c); err != nil {
		return "", err
	}
	if b.State != "STAGED" {
		return "", fmt.Errorf("staging failed: %s", b.Error)
	}
	return b.Droplet.GUID, nil
}

// AwaitBuilds waits until no build of an app is under way, of which there can be one
// at a time.
func AwaitBuilds(ctx context.Context, c *Client, app string) error {
	all, err := List[build](ctx, c, "/v3/builds?"+url.Values{"app_guids": {app}, "states": {"STAGING"}}.Encode())
	if err != nil {
		return err
	}
	for _, b := range all {
		if err := b.await(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a build has ended.
func (b *build) await(ctx context.Context, c *Client) error {
	for b.State == "STAGING" {
		asked := time.Now()
		if err := c.Call(ctx, "GET", "/v3/builds/"+b.GUID, nil, b); err != nil {
			return err
		}
		// cupola holds its answer until there is news; others are asked now and then.
		if b.State == "STAGING" && time.Since(asked) < 100*time.Millisecond {
			if err := Pause(ctx, 500*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// ApplyManifest applies a manifest to a space, and waits until it is done.
func (c *Client) ApplyManifest(ctx context.Context, space string, manifest []byte) error {
	req, err := http.NewRequestWithContext(ctx, "POST", c.URL("/v3/spaces/"+space+"/actions/apply_manifest"), bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-yaml")
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	return c.Job(ctx, res.Header.Get("Location"))
}

// Job waits for the job of a 202.
func (c *Client) Job(ctx context.Context, location string) error {
	for {
		var j struct {
			State  string
			Errors []struct{ Detail string }
		}
		if err := c.Call(ctx, "GET", location, nil, &j); err != nil {
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
		if err := Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Filter is a query that wants a value; "" for any.
func Filter(name, value string) string {
	if value == "" {
		return ""
	}
	return url.Values{name: {Exact(value)}}.Encode()
}

// Exact is a value of a filter that takes a list: Cloud Controller splits it at commas, and then decodes each part.
func Exact(value string) string {
	return strings.NewReplacer("%", "%25", ",", "%2C").Replace(value)
}
