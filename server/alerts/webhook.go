package alerts

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"cupola/runtime/egress"
	"cupola/store/cf"
)

// operators is where targets may be: admins name them, so this machine is allowed.
// Metadata services of clouds are not.
var operators = egress.Guard{Operator: true}

// sendWebhook posts a message. It follows no redirect.
func sendWebhook(ctx context.Context, s cf.AlertSettings, m message) (taken int, err error) {
	body, taken, err := m.body(s.Form)
	if err != nil {
		return 0, err
	}
	client, err := webhookClient(s.CA)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "cupola")
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxText)) // the status alone decides
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return 0, fmt.Errorf("the webhook answered %s: %s", res.Status, clean(string(said), maxText))
	}
	return taken, nil
}

func webhookClient(ca string) (*http.Client, error) {
	transport := operators.Transport(sendTime)
	transport.DisableKeepAlives = true
	var err error
	if transport.TLSClientConfig, err = tlsConfig(ca, ""); err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// tlsConfig trusts the machine's authorities, and those in PEM.
func tlsConfig(ca, server string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server}
	if ca == "" {
		return c, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("the target's ca holds no certificate in PEM")
	}
	c.RootCAs = roots
	return c, nil
}

// redact takes what is secret of a target out of an error: the address of a webhook
// is its password.
func redact(err error, s cf.AlertSettings) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := err.Error()
	secrets := []string{s.URL, s.Pass}
	if u, perr := url.Parse(s.URL); perr == nil && s.URL != "" {
		secrets = append(secrets, u.RequestURI(), strings.Trim(u.Path, "/"), u.RawQuery, u.User.String())
	}
	for _, secret := range secrets {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "[REDACTED]")
		}
	}
	return errors.New(text)
}

// where says where a target is, without what is secret.
func where(t *cf.AlertTarget) string {
	switch t.Kind {
	case cf.AlertWebhook:
		u, err := url.Parse(t.Settings.URL)
		if err != nil {
			return "(not a URL)"
		}
		return u.Scheme + "://" + u.Host + "/…"
	case cf.AlertMail:
		return strings.Join(t.Settings.To, ", ") + " by " + t.Settings.Server
	}
	return t.Settings.Command
}
