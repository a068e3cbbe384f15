package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type domainCertificateCmd struct {
	Set    certificateSetCmd    `cmd:"" help:"Give a domain its own certificate."`
	Show   certificateShowCmd   `cmd:"" help:"Show the certificate that a domain was given."`
	Delete certificateDeleteCmd `cmd:"" aliases:"rm" help:"Delete the certificate of a domain; the router shows one of the daemon's CA, or of --acme, again."`
}

// domainArg names a domain.
type domainArg struct {
	capi.Flags
	Domain string `arg:"" help:"The domain."`
}

// open logs in and finds the domain.
func (a *domainArg) open(e *command.Env) (api *capi.Client, path string, err error) {
	if api, err = a.Login(e.Ctx); err != nil {
		return nil, "", err
	}
	guid, err := api.First(e.Ctx, "domain "+a.Domain, "/v3/domains?"+capi.Filter("names", a.Domain))
	return api, "/v3/domains/" + guid + "/certificate", err
}

// certificateView is a certificate as the API shows it.
type certificateView struct {
	Names     []string  `json:"names"`
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
}

type certificateSetCmd struct {
	domainArg
	Cert string `required:"" help:"The certificate with its chain, in PEM: the server's first, then each one's issuer." placeholder:"FILE"`
	Key  string `required:"" help:"Its private key, in PEM." placeholder:"FILE"`
}

// Run gives a domain a certificate.
func (c *certificateSetCmd) Run(e *command.Env) error {
	cert, err := os.ReadFile(c.Cert)
	if err != nil {
		return fmt.Errorf("read --cert: %w", err)
	}
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return fmt.Errorf("read --key: %w", err)
	}
	api, path, err := c.open(e)
	if err != nil {
		return err
	}
	var got certificateView
	if err := api.Call(e.Ctx, "PUT", path, capi.Doc{"certificate": string(cert), "private_key": string(key)}, &got); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Set the certificate of %s: it names %s and is valid until %s.\n", c.Domain, strings.Join(got.Names, ", "), command.When(got.NotAfter))
	return err
}

type certificateShowCmd struct {
	domainArg
	JSON bool `help:"Print JSON." name:"json"`
}

// Run shows the certificate of a domain.
func (c *certificateShowCmd) Run(e *command.Env) error {
	api, path, err := c.open(e)
	if err != nil {
		return err
	}
	var got certificateView
	if err := api.Call(e.Ctx, "GET", path, nil, &got); err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, got)
	}
	_, err = fmt.Fprintf(e.Out, "Names:    %s\nSubject:  %s\nIssuer:   %s\nValid:    %s to %s\n", strings.Join(got.Names, ", "), got.Subject, got.Issuer, command.When(got.NotBefore), command.When(got.NotAfter))
	return err
}

type certificateDeleteCmd struct{ domainArg }

// Run deletes the certificate of a domain.
func (c *certificateDeleteCmd) Run(e *command.Env) error {
	api, path, err := c.open(e)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Deleted the certificate of %s.\n", c.Domain)
	return err
}
