package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/crypto/ssh"
)

// SSHCode is what `cf ssh-code` prints.
func (d *Daemon) SSHCode() string {
	d.T.Helper()
	c := d.Client()
	c.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequest("GET", c.API+"/oauth/authorize?response_type=code&client_id=ssh-proxy", nil)
	if err != nil {
		d.T.Fatal(err)
	}
	res, err := c.Send(req)
	if err != nil {
		d.T.Fatal(err)
	}
	res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != 302 || to.Query().Get("code") == "" {
		d.T.Fatalf("got status %d, location %q", res.StatusCode, res.Header.Get("Location"))
	}
	return to.Query().Get("code")
}

// DialSSH connects to a web instance of the app probe.
func (d *Daemon) DialSSH(index int, code string) (c *ssh.Client, banner string, err error) {
	d.T.Helper()
	var root struct {
		Links struct {
			SSH struct {
				Href string
				Meta struct {
					Fingerprint string `json:"host_key_fingerprint"`
					Client      string `json:"oauth_client"`
				}
			} `json:"app_ssh"`
		}
	}
	d.API("GET", "/", nil, &root)
	link := root.Links.SSH
	if link.Meta.Client != "ssh-proxy" || len(link.Meta.Fingerprint) != 43 {
		d.T.Fatalf("got app_ssh %+v", link)
	}
	var web struct{ GUID string }
	d.API("GET", "/v3/apps/"+d.App("probe")+"/processes/web", nil, &web) // as the CLI finds it
	c, err = ssh.Dial("tcp", link.Href, &ssh.ClientConfig{
		User: fmt.Sprintf("cf:%s/%d", web.GUID, index), Auth: []ssh.AuthMethod{ssh.Password(code)}, Timeout: 10 * time.Second,
		BannerCallback: func(text string) error { banner += text; return nil },
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			sum := sha256.Sum256(key.Marshal())
			if base64.RawStdEncoding.EncodeToString(sum[:]) != link.Meta.Fingerprint {
				return errors.New("the key is not the announced one")
			}
			return nil
		},
	})
	if err == nil {
		d.T.Cleanup(func() { c.Close() })
	}
	return c, banner, err
}

// Enter is dialSSH with a fresh code.
func (d *Daemon) Enter(index int) *ssh.Client {
	d.T.Helper()
	c, _, err := d.DialSSH(index, d.SSHCode())
	if err != nil {
		d.T.Fatal(err)
	}
	return c
}

// NewSession opens a session.
func (d *Daemon) NewSession(c *ssh.Client) *ssh.Session {
	d.T.Helper()
	s, err := c.NewSession()
	if err != nil {
		d.T.Fatal(err)
	}
	return s
}

// SSHAddress is where the daemon listens for cf ssh.
func (d *Daemon) SSHAddress() string {
	d.T.Helper()
	var root struct {
		Links map[string]*struct{ Href string }
	}
	d.API("GET", "/", nil, &root)
	return root.Links["app_ssh"].Href
}
