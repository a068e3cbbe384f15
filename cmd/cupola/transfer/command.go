package transfer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// ImportCmd is cupola import.
type ImportCmd struct {
	capi.Flags
	From  string `required:"" help:"API URL of the other Cloud Foundry." placeholder:"URL"`
	Other other  `embed:"" prefix:"from-"`
	scope
}

// Help says what comes over.
func (c *ImportCmd) Help() string { return help }

// Run imports.
func (c *ImportCmd) Run(e *command.Env) error {
	from, err := c.Other.login(e.Ctx, "from", c.From)
	if err != nil {
		return err
	}
	to, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	return c.copy(e, from, to)
}

// ExportCmd is cupola export.
type ExportCmd struct {
	capi.Flags
	To    string `required:"" help:"API URL of the other Cloud Foundry." placeholder:"URL"`
	Other other  `embed:"" prefix:"to-"`
	scope
}

// Help says what goes over.
func (c *ExportCmd) Help() string { return help }

// Run exports.
func (c *ExportCmd) Run(e *command.Env) error {
	from, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	to, err := c.Other.login(e.Ctx, "to", c.To)
	if err != nil {
		return err
	}
	return c.copy(e, from, to)
}

const help = "Each app is copied with its manifest (environment, processes, sidecars, health checks, routes, labels, bindings) and its files, into the org and space of the same names, which are " +
	"created where they are missing; user-provided services and roles of users who exist there are copied, too. Managed services, their data and credentials of images are not: they are listed. " +
	"Nothing is changed where the apps come from. The same command goes on with a copy that was broken off, and copies what has changed since."

// scope is what is copied.
type scope struct {
	Org      string   `help:"The org; by default all but 'system'." short:"o"`
	Space    string   `help:"The space; by default all of the orgs." short:"s"`
	App      []string `help:"An app; by default all of the spaces. May be repeated." short:"a" sep:"none"`
	Domain   []string `help:"Routes of one domain get another one. By default, routes of shared domains that are missing get the default one, and private domains are created. May be repeated." placeholder:"OLD=NEW" sep:"none"`
	Droplets bool     `help:"Copy droplets instead of staging the apps again. They need the same stack."`
	Stopped  bool     `help:"Do not start the apps."`
	DryRun   bool     `help:"Show what would be copied, and change nothing."`
}

// copy copies it.
func (s scope) copy(e *command.Env, from, to *capi.Client) error {
	return (&copier{from: from, to: to, scope: s, show: command.NewReport(e)}).run(e.Ctx)
}

// other is who calls the other Cloud Foundry.
type other struct {
	User     string `help:"The user to log in as there."`
	Password string `help:"The user's password." env:"CUPOLA_OTHER_PASSWORD"`
	Token    string `help:"A token instead, as 'cf oauth-token' prints it." env:"CUPOLA_OTHER_TOKEN"`
	SkipSSL  bool   `name:"skip-ssl-validation" help:"Accept any certificate."`
}

// login logs in to the API at a URL, which the flag gave.
func (o *other) login(ctx context.Context, flag, api string) (*capi.Client, error) {
	if u, err := url.Parse(api); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("invalid --%s %q: give a URL like https://api.example.com", flag, api)
	}
	c := &capi.Client{API: strings.TrimSuffix(api, "/"), HTTP: &http.Client{}}
	if o.SkipSSL {
		insecure := http.DefaultTransport.(*http.Transport).Clone()
		insecure.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it was asked for
		c.HTTP.Transport = insecure
	}
	switch {
	case o.Token != "":
		c.Token = strings.TrimSpace(o.Token)
		if kind, token, ok := strings.Cut(c.Token, " "); ok && strings.EqualFold(kind, "bearer") {
			c.Token = token
		}
		return c, nil
	case o.User == "" || o.Password == "":
		return nil, fmt.Errorf("no user for %s: give --%s-user and --%s-password, or --%s-token \"$(cf oauth-token)\"", c.API, flag, flag, flag)
	}
	uaa, err := loginServer(ctx, c)
	if err != nil {
		return nil, err
	}
	return capi.LoginAt(ctx, c, uaa, o.User, o.Password)
}

// rootMax bounds what an API says of itself, in bytes.
const rootMax = 1 << 20

// loginServer is where tokens of an API come from: as the API says, unless it gives them itself, as cupola's does.
func loginServer(ctx context.Context, c *capi.Client) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.API+"/", nil)
	if err != nil {
		return "", err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return "", fmt.Errorf("reach the other Cloud Foundry: %w", err)
	}
	defer res.Body.Close()
	var root struct {
		Links map[string]struct{ Href string }
	}
	err = json.NewDecoder(io.LimitReader(res.Body, rootMax)).Decode(&root)
	if _, ok := root.Links["cloud_controller_v3"]; err != nil || !ok {
		return "", fmt.Errorf("%s is not the API of a Cloud Foundry: give the URL that 'cf api' prints", c.API)
	}
	if err := c.Call(ctx, http.MethodGet, "/.well-known/openid-configuration", nil, nil); err == nil {
		return c.API, nil
	}
	if at := root.Links["login"].Href; at != "" {
		return at, nil
	}
	return "", errors.New("the API does not say where to log in: give a token instead")
}
