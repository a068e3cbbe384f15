package capi

import (
	"context"
	"fmt"
	"net/http"
)

// SSHProxy is the daemon's SSH server, as its API announces it: the link app_ssh of
// CC's root.
type SSHProxy struct {
	Address     string // HOST:PORT
	Fingerprint string // of its host key: SHA-256 in base64 without padding
	Client      string // the OAuth client that one-time codes are for
}

// SSHProxy asks the API where its SSH server is.
func (c *Client) SSHProxy(ctx context.Context) (SSHProxy, error) {
	var root struct {
		Links struct {
			SSH *struct {
				Href string
				Meta struct {
					Fingerprint string `json:"host_key_fingerprint"`
					Client      string `json:"oauth_client"`
				}
			} `json:"app_ssh"`
		}
	}
	if err := c.Call(ctx, http.MethodGet, "/", nil, &root); err != nil {
		return SSHProxy{}, err
	}
	link := root.Links.SSH
	if link == nil || link.Href == "" {
		return SSHProxy{}, fmt.Errorf("SSH is off at %s: start the daemon with --ssh ADDRESS", c.API)
	}
	return SSHProxy{Address: link.Href, Fingerprint: link.Meta.Fingerprint, Client: link.Meta.Client}, nil
}
