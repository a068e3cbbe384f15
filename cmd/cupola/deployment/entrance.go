package deployment

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// entrance is the daemon's SSH server, and who makes one-time codes for it.
type entrance struct {
	capi.SSHProxy
	api *capi.Client
}

// greetTime bounds how long a connection takes to begin.
const greetTime = 30 * time.Second

func findEntrance(e *command.Env, api *capi.Client) (entrance, error) {
	proxy, err := api.SSHProxy(e.Ctx)
	return entrance{SSHProxy: proxy, api: api}, err
}

// code gets a one-time code for a connection.
func (n entrance) code(e *command.Env) (string, error) {
	api := *n.api
	api.HTTP = &http.Client{Transport: n.api.HTTP.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	query := url.Values{"response_type": {"code"}, "client_id": {n.Client}}
	req, err := http.NewRequestWithContext(e.Ctx, "GET", api.URL("/oauth/authorize?"+query.Encode()), nil)
	if err != nil {
		return "", err
	}
	res, err := api.Send(req)
	if err != nil {
		return "", err
	}
	res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || to.Query().Get("code") == "" {
		return "", fmt.Errorf("get a one-time code: unexpected answer %s", res.Status)
	}
	return to.Query().Get("code"), nil
}

// enter connects to the container of a process.
func (n entrance) enter(e *command.Env, p processView) (*ssh.Client, error) {
	code, err := n.code(e)
	if err != nil {
		return nil, err
	}
	reason := ""
	config := &ssh.ClientConfig{User: "bosh:" + p.GUID + "/0", Auth: []ssh.AuthMethod{ssh.Password(code)},
		BannerCallback: func(text string) error { reason = strings.TrimSpace(text); return nil },
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			sum := sha256.Sum256(key.Marshal())
			if base64.RawStdEncoding.EncodeToString(sum[:]) != n.Fingerprint {
				return fmt.Errorf("the host key of %s is not the one that the API announces", n.Address)
			}
			return nil
		}}
	dialer := &net.Dialer{Timeout: greetTime}
	conn, err := dialer.DialContext(e.Ctx, "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(greetTime))
	c, channels, requests, err := ssh.NewClientConn(conn, n.Address, config)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("enter the container: %s", cmp.Or(reason, err.Error()))
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}
